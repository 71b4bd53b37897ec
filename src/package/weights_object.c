/* Written by hand and not by LLVM: an LLVM constant of a weight is a copy of it, and the object another. Here
 * the kernel copies from the mapped model file to the object, and nothing else holds the bytes.
 *
 * Layout: ELF header, .lrodata, .symtab, .strtab, .shstrtab, section headers. */
#include "package/weights_object.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"

#define WEIGHT_ALIGN 64u

/* x86-64's own section flag; older <elf.h> do not name it. */
#ifndef SHF_X86_64_LARGE
#define SHF_X86_64_LARGE 0x10000000
#endif

/* ---- The list ---- */

static o3_status_t read_weight(o3_arena_t *arena, MlirAttribute dict, o3_weights_t *store,
                               o3_weight_t *weight) {
  bool is_dict = !mlirAttributeIsNull(dict) && mlirAttributeIsADictionary(dict);
  MlirAttribute none = {0};
  MlirAttribute symbol = is_dict ? mlirDictionaryAttrGetElementByName(dict, O3_STR("symbol")) : none;
  MlirAttribute value = is_dict ? mlirDictionaryAttrGetElementByName(dict, O3_STR("value")) : none;
  if (mlirAttributeIsNull(symbol) || mlirAttributeIsNull(value) || !mlirAttributeIsAString(symbol))
    return o3_status_create(O3_STATUS_INTERNAL, "o3.weights holds an entry without symbol and value");
  MlirStringRef name = mlirStringAttrGetValue(symbol);
  weight->symbol = o3_arena_strndup(arena, name.data, name.length);
  O3_TRY_ALLOC(weight->symbol);
  weight->data = o3_weights_data(store, value, &weight->bytes);
  if (!weight->data)
    return o3_status_create(O3_STATUS_INVALID_MODEL, "no data is known for weight '%s'", weight->symbol);
  return NULL;
}

o3_status_t o3_weight_list_read(o3_arena_t *arena, MlirModule module, o3_weights_t *store,
                                o3_weight_list_t *list) {
  *list = (o3_weight_list_t){0};
  MlirAttribute array = o3_op_attr(mlirModuleGetOperation(module), "o3.weights");
  if (mlirAttributeIsNull(array)) return NULL;
  if (!mlirAttributeIsAArray(array)) return o3_status_create(O3_STATUS_INTERNAL, "o3.weights is no array");
  list->count = (size_t)mlirArrayAttrGetNumElements(array);
  o3_weight_t *items = O3_ARENA_ARRAY(arena, o3_weight_t, list->count + 1);
  O3_TRY_ALLOC(items);
  for (size_t i = 0; i < list->count; ++i) {
    O3_TRY(read_weight(arena, mlirArrayAttrGetElement(array, (intptr_t)i), store, &items[i]));
    list->total_bytes += items[i].bytes;
  }
  list->items = items;
  return NULL;
}

/* ---- The object ---- */

enum {
  SECTION_NULL,
  SECTION_RODATA,
  SECTION_SYMTAB,
  SECTION_STRTAB,
  SECTION_SHSTRTAB,
  SECTION_STACK,
  SECTION_COUNT
};

#define SECTION_NAMES "\0.lrodata\0.symtab\0.strtab\0.shstrtab\0.note.GNU-stack"

typedef struct writer {
  FILE *file;
  const char *path;
  uint64_t offset;
  bool failed;
} writer_t;

static void put(writer_t *writer, const void *data, size_t size) {
  if (writer->failed || size == 0) return;
  writer->failed = fwrite(data, size, 1, writer->file) != 1;
  writer->offset += size;
}

static void align(writer_t *writer, uint64_t alignment) {
  static const uint8_t zeros[WEIGHT_ALIGN];
  put(writer, zeros, (size_t)(-writer->offset & (alignment - 1)));
}

static void put_header(writer_t *writer, uint64_t section_table) {
  Elf64_Ehdr header = {
      .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT, ELFOSABI_NONE},
      .e_type = ET_REL,
      .e_machine = EM_X86_64,
      .e_version = EV_CURRENT,
      .e_shoff = section_table,
      .e_ehsize = sizeof(Elf64_Ehdr),
      .e_shentsize = sizeof(Elf64_Shdr),
      .e_shnum = SECTION_COUNT,
      .e_shstrndx = SECTION_SHSTRTAB};
  put(writer, &header, sizeof(header));
}

/* Symbol 0 is null; the weights follow, all global, at the offsets that put_weights gives them. */
static void put_symbols(writer_t *writer, const o3_weight_list_t *list) {
  Elf64_Sym symbol = {0};
  put(writer, &symbol, sizeof(symbol));
  uint64_t value = 0, name = 1;
  for (size_t i = 0; i < list->count; ++i) {
    const o3_weight_t *weight = &list->items[i];
    O3_ASSERT(name <= UINT32_MAX, "names of weights take less than 4 GB");
    symbol = (Elf64_Sym){.st_name = (uint32_t)name,
                         .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
                         .st_other = STV_HIDDEN,
                         .st_shndx = SECTION_RODATA,
                         .st_value = value,
                         .st_size = weight->bytes};
    put(writer, &symbol, sizeof(symbol));
    value += (weight->bytes + WEIGHT_ALIGN - 1) & ~(uint64_t)(WEIGHT_ALIGN - 1);
    name += strlen(weight->symbol) + 1;
  }
}

static void put_weights(writer_t *writer, const o3_weight_list_t *list) {
  for (size_t i = 0; i < list->count; ++i) {
    put(writer, list->items[i].data, list->items[i].bytes);
    align(writer, WEIGHT_ALIGN);
  }
}

static void put_names(writer_t *writer, const o3_weight_list_t *list) {
  put(writer, "", 1);
  for (size_t i = 0; i < list->count; ++i)
    put(writer, list->items[i].symbol, strlen(list->items[i].symbol) + 1);
}

/* The place of |name| in SECTION_NAMES. */
static uint32_t section_name(const char *name) {
  const char *all = SECTION_NAMES;
  for (size_t i = 1; i < sizeof(SECTION_NAMES); i += strlen(all + i) + 1)
    if (!strcmp(all + i, name)) return (uint32_t)i;
  O3_UNREACHABLE("the name is one of SECTION_NAMES");
}

/* Writes the sections' contents and notes in |headers| where they are. */
static void put_sections(writer_t *writer, const o3_weight_list_t *list, Elf64_Shdr *headers) {
  headers[SECTION_RODATA] = (Elf64_Shdr){.sh_name = section_name(".lrodata"),
                                         .sh_type = SHT_PROGBITS,
                                         .sh_flags = SHF_ALLOC | SHF_X86_64_LARGE,
                                         .sh_addralign = WEIGHT_ALIGN};
  headers[SECTION_SYMTAB] = (Elf64_Shdr){.sh_name = section_name(".symtab"),
                                         .sh_type = SHT_SYMTAB,
                                         .sh_link = SECTION_STRTAB,
                                         .sh_info = 1,
                                         .sh_addralign = 8,
                                         .sh_entsize = sizeof(Elf64_Sym)};
  headers[SECTION_STRTAB] =
      (Elf64_Shdr){.sh_name = section_name(".strtab"), .sh_type = SHT_STRTAB, .sh_addralign = 1};
  headers[SECTION_SHSTRTAB] =
      (Elf64_Shdr){.sh_name = section_name(".shstrtab"), .sh_type = SHT_STRTAB, .sh_addralign = 1};
  headers[SECTION_STACK] =
      (Elf64_Shdr){.sh_name = section_name(".note.GNU-stack"), .sh_type = SHT_PROGBITS, .sh_addralign = 1};
  for (int i = SECTION_RODATA; i < SECTION_COUNT; ++i) {
    align(writer, headers[i].sh_addralign);
    headers[i].sh_offset = writer->offset;
    if (i == SECTION_RODATA) put_weights(writer, list);
    if (i == SECTION_SYMTAB) put_symbols(writer, list);
    if (i == SECTION_STRTAB) put_names(writer, list);
    if (i == SECTION_SHSTRTAB) put(writer, SECTION_NAMES, sizeof(SECTION_NAMES));
    headers[i].sh_size = writer->offset - headers[i].sh_offset;
  }
}

static void put_object(writer_t *writer, const o3_weight_list_t *list) {
  Elf64_Shdr headers[SECTION_COUNT] = {0};
  put_header(writer, 0);
  put_sections(writer, list, headers);
  align(writer, 8);
  uint64_t table = writer->offset;
  put(writer, headers, sizeof(headers));
  if (!writer->failed) writer->failed = fseek(writer->file, 0, SEEK_SET) != 0;
  put_header(writer, table);
}

o3_status_t o3_weights_object_write(const char *path, const o3_weight_list_t *list) {
  writer_t writer = {.file = fopen(path, "wbe"), .path = path};
  if (writer.file) put_object(&writer, list);
  bool ok = writer.file && !writer.failed;
  int error = errno;
  if (writer.file && fclose(writer.file) && ok) {
    ok = false;
    error = errno;
  }
  if (ok) return NULL;
  return o3_status_create(O3_STATUS_IO, "cannot write the weights (%llu bytes) to '%s': %s",
                          (unsigned long long)list->total_bytes, path, strerror(error));
}
