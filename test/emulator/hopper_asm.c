// Assembly of several instructions, as products of warpgroups come: its text is read once for each place in
// the code, and its instructions are functions by hopper_asm.def.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hopper_groups.h"
#include "hopper_ops.h"

enum {
  MAX_REGISTERS = 16,
  MAX_OPERANDS = 8,
  MAX_STATEMENTS = 64,
  MAX_SLOTS = 400,
  MAX_VALUES = 2048,
  NAME = 64
};

// A value of an instruction: an operand of the assembly, a register of its own, a number; or several in
// braces.
typedef enum kind { SLOT, REGISTER, NUMBER } kind_t;
typedef struct value {
  kind_t kind;
  int64_t number;
} value_t;
typedef struct operand {
  int first, count;  // of the code's values
} operand_t;

typedef struct frame frame_t;
typedef struct statement statement_t;
typedef void run_fn_t(const statement_t *s, frame_t *f);
struct statement {
  run_fn_t *run;
  const char *rest;  // of the instruction's name
  int num_operands;
  operand_t operands[MAX_OPERANDS];
};

typedef struct code {
  char registers[MAX_REGISTERS][NAME];
  int num_registers, num_statements, num_values, num_tied;
  statement_t statements[MAX_STATEMENTS];
  value_t values[MAX_VALUES];
} code_t;

struct frame {
  const code_t *code;
  uint64_t *slots;
  uint64_t registers[MAX_REGISTERS];
};

// ---- Running ----

static const value_t *value_at(const statement_t *s, const frame_t *f, int operand, int index) {
  return &f->code->values[s->operands[operand].first + index];
}

static uint64_t get(const statement_t *s, const frame_t *f, int operand, int index) {
  const value_t *v = value_at(s, f, operand, index);
  return v->kind == SLOT       ? f->slots[v->number]
         : v->kind == REGISTER ? f->registers[v->number]
                               : (uint64_t)v->number;
}

static void set(const statement_t *s, frame_t *f, int operand, int index, uint64_t value) {
  const value_t *v = value_at(s, f, operand, index);
  if (v->kind == NUMBER) emu_fail("assembly that writes a number: %s", s->rest);
  *(v->kind == SLOT ? &f->slots[v->number] : &f->registers[v->number]) = value;
}

static void run_fence(const statement_t *s, frame_t *f) { (void)s, (void)f; }

// {low, high} is one value of twice the bits.
static void run_move(const statement_t *s, frame_t *f) {
  uint64_t value = get(s, f, 1, 0);
  if (s->operands[1].count == 2) value = (value & UINT32_MAX) | get(s, f, 1, 1) << 32;
  set(s, f, 0, 0, value);
}

static void run_or(const statement_t *s, frame_t *f) {
  set(s, f, 0, 0, (uint32_t)(get(s, f, 1, 0) | get(s, f, 2, 0)));
}
static void run_add(const statement_t *s, frame_t *f) { set(s, f, 0, 0, get(s, f, 1, 0) + get(s, f, 2, 0)); }

static bool equal(const statement_t *s, const frame_t *f) {
  return (uint32_t)get(s, f, 1, 0) == (uint32_t)get(s, f, 2, 0);
}
static void run_equal(const statement_t *s, frame_t *f) { set(s, f, 0, 0, equal(s, f)); }
static void run_not_equal(const statement_t *s, frame_t *f) { set(s, f, 0, 0, !equal(s, f)); }
static void run_commit(const statement_t *s, frame_t *f) {
  (void)s, (void)f;
  emu_wgmma_commit();
}

// "m64n128k16.f32.f16.f16"; both factors are of one type here.
static emu_wgmma_t read_shape(const char *rest) {
  char types[2][8];
  int n = 0, k = 0;
  if (sscanf(rest, "m64n%dk%d.f32.%7[a-z0-9].%7[a-z0-9]", &n, &k, types[0], types[1]) != 4 ||
      strcmp(types[0], types[1]) != 0)
    emu_fail("wgmma of this form is not emulated: %s", rest);
  emu_wgmma_t what = {.element = emu_element_named(types[0], (int)strlen(types[0])),
                      .columns = n,
                      .a_by_k = true,
                      .b_by_k = true};
  if (what.element == EMU_ELEMENTS || k * emu_element_bytes(what.element) != EMU_PRODUCT_K || n < 8 ||
      n > EMU_PRODUCT_COLUMNS || n % 8)
    emu_fail("there is no wgmma %s", rest);
  return what;
}

// sums, A (a descriptor or four registers), B, whether sums are added to, signs of A and B, then for halves
// whether A (unless it is in registers) and B are transposed.
static void run_wgmma(const statement_t *s, frame_t *f) {
  enum { SUMS, A, B, ADDS, SIGN_A, SIGN_B, TURNS };
  emu_wgmma_t what = read_shape(s->rest);
  uint32_t sums[EMU_PRODUCT_COLUMNS / 2], a[4] = {0};
  int count = s->operands[SUMS].count, turns = TURNS;
  if (count != what.columns / 2 || get(s, f, SIGN_A, 0) != 1 || get(s, f, SIGN_B, 0) != 1)
    emu_fail("wgmma with other sums or signs is not emulated: %s", s->rest);
  what.a_in_registers = s->operands[A].count == 4;
  for (int i = 0; what.a_in_registers && i < 4; ++i) a[i] = (uint32_t)get(s, f, A, i);
  if (!what.a_in_registers) what.a = get(s, f, A, 0);
  what.b = get(s, f, B, 0);
  what.accumulate = get(s, f, ADDS, 0) != 0;
  if (!what.a_in_registers && turns < s->num_operands) what.a_by_k = get(s, f, turns++, 0) == 0;
  if (turns < s->num_operands) what.b_by_k = get(s, f, turns, 0) == 0;
  for (int i = 0; i < count; ++i) sums[i] = (uint32_t)get(s, f, SUMS, i);
  emu_wgmma_issue(&what, sums, what.a_in_registers ? a : NULL);
  for (int i = 0; i < count; ++i) set(s, f, SUMS, i, sums[i]);
}

// ---- Reading ----

typedef struct reader {
  code_t *code;
  const char *at;
} reader_t;

static const struct {
  const char *start;
  run_fn_t *run;
  int operands;
} kInstructions[] = {
#define EMU_ASM(start, run, operands) {start, run, operands},
#include "hopper_asm.def"
#undef EMU_ASM
};

static void skip(reader_t *r, const char *characters) { r->at += strspn(r->at, characters); }

// Letters, digits and points.
static int read_word(reader_t *r, char word[NAME]) {
  int length = 0;
  skip(r, " \t\n");
  while (isalnum((unsigned char)r->at[length]) || strchr("._%$-", r->at[length] ? r->at[length] : ' '))
    ++length;
  if (length >= NAME) emu_fail("assembly with a long word: %.80s", r->at);
  memcpy(word, r->at, (size_t)length);
  word[length] = 0;
  r->at += length;
  return length;
}

static void read_value(reader_t *r) {
  char word[NAME], *end;
  code_t *code = r->code;
  if (code->num_values == MAX_VALUES) emu_fail("assembly with more than %d values", MAX_VALUES);
  value_t *v = &code->values[code->num_values++];
  if (!read_word(r, word)) emu_fail("assembly that is not understood at: %.60s", r->at);
  *v = (value_t){.kind = word[0] == '$' ? SLOT : NUMBER};
  v->number = strtoll(word + (word[0] == '$'), &end, 0);
  if (!*end && end > word) return;
  for (int i = 0; i < code->num_registers; ++i) {
    if (strcmp(code->registers[i], word) != 0) continue;
    *v = (value_t){REGISTER, i};
    return;
  }
  emu_fail("assembly with an unknown operand %s", word);
}

static operand_t read_operand(reader_t *r) {
  operand_t operand = {.first = r->code->num_values};
  skip(r, " [");
  bool several = *r->at == '{';
  do {
    skip(r, " ,{");
    read_value(r);
    ++operand.count;
    skip(r, " ]");
  } while (several && *r->at == ',');
  if (several && *r->at == '}') ++r->at;
  skip(r, " ");
  return operand;
}

static void declare(reader_t *r) {
  char word[NAME];
  read_word(r, word);  // the type
  do {
    skip(r, " ,");
    if (r->code->num_registers == MAX_REGISTERS)
      emu_fail("assembly with more than %d registers", MAX_REGISTERS);
    read_word(r, r->code->registers[r->code->num_registers++]);
    skip(r, " ");
  } while (*r->at == ',');
}

static void read_instruction(reader_t *r, const char *start, const char *word) {
  code_t *code = r->code;
  statement_t *s = &code->statements[code->num_statements++];
  if (code->num_statements == MAX_STATEMENTS)
    emu_fail("assembly of more than %d instructions", MAX_STATEMENTS);
  *s = (statement_t){0};
  int needed = 0;
  for (size_t i = 0; i < sizeof kInstructions / sizeof kInstructions[0] && !s->run; ++i) {
    size_t length = strlen(kInstructions[i].start);
    if (strncmp(word, kInstructions[i].start, length) != 0) continue;
    s->run = kInstructions[i].run;
    s->rest = start + length;
    needed = kInstructions[i].operands;
  }
  if (!s->run) emu_fail("assembly that is not emulated: %s", word);
  skip(r, " ");
  while (*r->at && *r->at != ';') {
    if (s->num_operands == MAX_OPERANDS)
      emu_fail("assembly with more than %d operands: %s", MAX_OPERANDS, word);
    s->operands[s->num_operands++] = read_operand(r);
    skip(r, ",");
  }
  if (s->num_operands < needed) emu_fail("assembly with too few operands: %s", word);
}

// Inputs that are tied to the outputs come first, and the text does not speak of them.
static void count_tied(code_t *code, const emu_site_t *site) {
  int64_t first = site->num_results + site->num_operands;
  for (int i = 0; i < code->num_values; ++i) {
    const value_t *v = &code->values[i];
    if (v->kind == SLOT && v->number >= site->num_results && v->number < first) first = v->number;
  }
  code->num_tied = (int)(first - site->num_results);
}

static code_t *read_code(const emu_site_t *site) {
  code_t *code = calloc(1, sizeof *code);
  reader_t r = {code, site->name};
  if (!code) emu_fail("out of memory");
  for (skip(&r, " {};\n\t"); *r.at; skip(&r, " {};\n\t")) {
    char word[NAME];
    const char *start = r.at;
    if (!read_word(&r, word)) emu_fail("assembly that is not understood at: %.60s", r.at);
    if (!strcmp(word, ".reg"))
      declare(&r);
    else
      read_instruction(&r, start, word);
  }
  count_tied(code, site);
  return code;
}

void emu_assembly(emu_thread_t *thread, const emu_word_t *operands, emu_word_t *results) {
  emu_site_t *site = thread->site;
  uint64_t slots[MAX_SLOTS];
  if (site->num_results + site->num_operands > MAX_SLOTS)
    emu_fail("assembly with more than %d operands", MAX_SLOTS);
  if (!site->read) site->read = read_code(site);
  const code_t *code = site->read;
  frame_t f = {.code = code, .slots = slots};
  for (int64_t i = 0; i < site->num_results; ++i)
    slots[i] = i < code->num_tied ? operands[i].u32 : UINT32_MAX;
  for (int64_t i = 0; i < site->num_operands; ++i) slots[site->num_results + i] = operands[i].u32;
  for (int i = 0; i < code->num_statements; ++i) code->statements[i].run(&code->statements[i], &f);
  for (int64_t i = 0; i < site->num_results; ++i) results[i].u64 = slots[i];
}
