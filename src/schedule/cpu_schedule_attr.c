/* The attribute o3.schedule of a CPU kernel's op: one table (cpu_schedules.def) says which fields a family
 * has and what they may hold, for schedules that are chosen and for those that a person writes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/cpu_schedule.h"

typedef struct field {
  const char *name;
  int64_t least, most;
} field_t;

#define O3_SCHEDULE_FIELD(field, least, most, what) {#field, least, most},
#define O3_SCHEDULE_FAMILY(id, name, ...)           static const field_t id##_FIELDS[] = {__VA_ARGS__};
#include "schedule/cpu_schedules.def"
#undef O3_SCHEDULE_FAMILY
#undef O3_SCHEDULE_FIELD

static const struct {
  const char *name;
  const field_t *fields;
  size_t count;
} FAMILIES[] = {
#define O3_SCHEDULE_FAMILY(id, name, ...) \
  [O3_SCHEDULE_FAMILY_##id] = {#name, id##_FIELDS, sizeof(id##_FIELDS) / sizeof(id##_FIELDS[0])},
#include "schedule/cpu_schedules.def"
#undef O3_SCHEDULE_FAMILY
};

typedef union any_schedule {
#define O3_SCHEDULE_FAMILY(id, name, ...) o3_schedule_##name##_t name;
#include "schedule/cpu_schedules.def"
#undef O3_SCHEDULE_FAMILY
} any_schedule_t;
enum { MAX_FIELDS = sizeof(any_schedule_t) / sizeof(int64_t) };

/* |multiple| is one of |of|; NULL: the 16 lanes of a block. */
static const struct {
  o3_schedule_family_t family;
  const char *multiple, *of;
} MULTIPLES[] = {{O3_SCHEDULE_FAMILY_PACKED, "columns", "lanes"},
                 {O3_SCHEDULE_FAMILY_PACKED, "panel", "columns"},
                 {O3_SCHEDULE_FAMILY_THIN, NULL, "lanes"},
                 {O3_SCHEDULE_FAMILY_TILES, NULL, "lanes"},
                 {O3_SCHEDULE_FAMILY_WINOGRAD, NULL, "lanes"},
                 {O3_SCHEDULE_FAMILY_WINOGRAD, "chunk", "pixels"},
                 {O3_SCHEDULE_FAMILY_WINOGRAD, "chunk", "whole"},
                 {O3_SCHEDULE_FAMILY_WINOGRAD, "panel", "chunk"},
                 {O3_SCHEDULE_FAMILY_CSR, NULL, "lanes"},
                 {O3_SCHEDULE_FAMILY_ATTENTION, "columns", "lanes"},
                 {O3_SCHEDULE_FAMILY_ATTENTION, "keys", "columns"},
                 {O3_SCHEDULE_FAMILY_ATTENTION, "value_columns", "lanes"},
                 {O3_SCHEDULE_FAMILY_ATTENTION, "values", "value_columns"},
                 {O3_SCHEDULE_FAMILY_BORDER, NULL, "lanes"}};

MlirAttribute o3_schedule_attr(MlirContext context, o3_schedule_family_t family, const void *schedule) {
  const int64_t *values = schedule;
  MlirNamedAttribute list[MAX_FIELDS + 1];
  size_t count = FAMILIES[family].count;
  for (size_t i = 0; i <= count; ++i) {
    MlirAttribute value =
        i < count ? o3_attr_i64(context, values[i]) : o3_attr_string(context, FAMILIES[family].name);
    const char *name = i < count ? FAMILIES[family].fields[i].name : "family";
    list[i] = mlirNamedAttributeGet(mlirIdentifierGet(context, O3_STR(name)), value);
  }
  return mlirDictionaryAttrGet(context, (intptr_t)count + 1, list);
}

o3_status_t o3_schedule_refuse(MlirOperation op, const char *name, int64_t value, const char *rule) {
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                          O3_SCHEDULE_ATTR " of '%.*s': '%s' is %" PRId64 ", it must be %s",
                          O3_STR_ARGS(o3_op_label(op)), name, value, rule);
}

static o3_status_t read_field(MlirOperation op, MlirNamedAttribute given, o3_schedule_family_t family,
                              int64_t *values) {
  MlirStringRef name = mlirIdentifierStr(given.name);
  size_t i = 0;
  while (i < FAMILIES[family].count && !o3_str_equal(name, FAMILIES[family].fields[i].name)) ++i;
  if (i == FAMILIES[family].count)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                            O3_SCHEDULE_ATTR " of '%.*s': '%.*s' is no field of family '%s'",
                            O3_STR_ARGS(o3_op_label(op)), O3_STR_ARGS(name), FAMILIES[family].name);
  const field_t *field = &FAMILIES[family].fields[i];
  bool is_integer = mlirAttributeIsAInteger(given.attribute);
  int64_t number = is_integer ? mlirIntegerAttrGetValueInt(given.attribute) : 0;
  if (is_integer && number >= field->least && number <= field->most) {
    values[i] = number;
    return NULL;
  }
  char rule[64];
  snprintf(rule, sizeof(rule), "an integer from %" PRId64 " to %" PRId64, field->least, field->most);
  if (is_integer) return o3_schedule_refuse(op, field->name, number, rule);
  char *text = o3_attr_text(given.attribute);
  o3_status_t status =
      o3_status_create(O3_STATUS_INVALID_ARGUMENT, O3_SCHEDULE_ATTR " of '%.*s': '%s' is %s, it must be %s",
                       O3_STR_ARGS(o3_op_label(op)), field->name, text ? text : "?", rule);
  free(text);
  return status;
}

static int64_t value_of(o3_schedule_family_t family, const int64_t *values, const char *name) {
  size_t i = 0;
  while (strcmp(FAMILIES[family].fields[i].name, name) != 0) ++i;
  return values[i];
}

static o3_status_t check_multiples(MlirOperation op, o3_schedule_family_t family, const int64_t *values) {
  for (size_t i = 0; i < sizeof(MULTIPLES) / sizeof(MULTIPLES[0]); ++i) {
    if (MULTIPLES[i].family != family) continue;
    const char *multiple = MULTIPLES[i].multiple, *of = MULTIPLES[i].of;
    int64_t part = value_of(family, values, of);
    if ((multiple ? value_of(family, values, multiple) : O3_BLOCK_LANES) % part == 0) continue;
    char lanes[16], rule[64];
    snprintf(lanes, sizeof(lanes), "%d", O3_BLOCK_LANES);
    snprintf(rule, sizeof(rule), "a divisor of %s", multiple ? multiple : lanes);
    return o3_schedule_refuse(op, of, part, rule);
  }
  return NULL;
}

o3_status_t o3_schedule_read(MlirOperation op, o3_schedule_family_t family, void *schedule) {
  MlirAttribute given = o3_op_attr(op, O3_SCHEDULE_ATTR);
  if (mlirAttributeIsNull(given)) return NULL;
  MlirAttribute name = mlirAttributeIsADictionary(given)
                           ? mlirDictionaryAttrGetElementByName(given, O3_STR("family"))
                           : (MlirAttribute){0};
  bool fits = !mlirAttributeIsNull(name) && mlirAttributeIsAString(name) &&
              o3_str_equal(mlirStringAttrGetValue(name), FAMILIES[family].name);
  if (!fits)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                            O3_SCHEDULE_ATTR " of '%.*s' must be a dictionary with family = \"%s\"",
                            O3_STR_ARGS(o3_op_label(op)), FAMILIES[family].name);
  int64_t *values = schedule;
  for (intptr_t i = 0; i < mlirDictionaryAttrGetNumElements(given); ++i) {
    MlirNamedAttribute element = mlirDictionaryAttrGetElement(given, i);
    if (!o3_str_equal(mlirIdentifierStr(element.name), "family"))
      O3_TRY(read_field(op, element, family, values));
  }
  return check_multiples(op, family, values);
}
