/* Written by hand and not by LLVM: an LLVM constant of a weight is a copy of it, and the object another. Here
 * the kernel copies from the mapped model file to the object, and nothing else holds the bytes.
 *
 * Layout: ELF header, .lrodata, .symtab, .strtab, .shstrtab, section headers.
 *
 * A linker would map the object and the library, and copy from one to the other: twice the weights' size in
 * memory. A library is linked with an object that has no bytes, therefore, and they are put in where its
 * segment has room for them: what lies behind in the file moves by whole pages, so that addresses stay as
 * they are. */
#include "package/weights_object.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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
  *list = (o3_weight_list_t){.store = store};
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

#define WEIGHTS_SECTION ".lrodata"
#define SECTION_NAMES   "\0" WEIGHTS_SECTION "\0.symtab\0.strtab\0.shstrtab\0.note.GNU-stack"

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

static uint64_t aligned_size(const o3_weight_t *weight) {
  return (weight->bytes + WEIGHT_ALIGN - 1) & ~(uint64_t)(WEIGHT_ALIGN - 1);
}

static uint64_t section_size(const o3_weight_list_t *list) {
  uint64_t size = 0;
  for (size_t i = 0; i < list->count; ++i) size += aligned_size(&list->items[i]);
  return size;
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
    value += aligned_size(weight);
    name += strlen(weight->symbol) + 1;
  }
}

static void put_weights(writer_t *writer, const o3_weight_list_t *list) {
  for (size_t i = 0; i < list->count; ++i) {
    put(writer, list->items[i].data, list->items[i].bytes);
    align(writer, WEIGHT_ALIGN);
    if (list->store) o3_weights_count_read(list->store, list->items[i].bytes);
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
static void put_sections(writer_t *writer, const o3_weight_list_t *list, bool bytes, Elf64_Shdr *headers) {
  headers[SECTION_RODATA] = (Elf64_Shdr){.sh_name = section_name(WEIGHTS_SECTION),
                                         .sh_type = bytes ? SHT_PROGBITS : SHT_NOBITS,
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
    if (i == SECTION_RODATA && bytes) put_weights(writer, list);
    if (i == SECTION_SYMTAB) put_symbols(writer, list);
    if (i == SECTION_STRTAB) put_names(writer, list);
    if (i == SECTION_SHSTRTAB) put(writer, SECTION_NAMES, sizeof(SECTION_NAMES));
    headers[i].sh_size = writer->offset - headers[i].sh_offset;
  }
  headers[SECTION_RODATA].sh_size = section_size(list);
}

static void put_object(writer_t *writer, const o3_weight_list_t *list, bool bytes) {
  Elf64_Shdr headers[SECTION_COUNT] = {0};
  put_header(writer, 0);
  put_sections(writer, list, bytes, headers);
  align(writer, 8);
  uint64_t table = writer->offset;
  put(writer, headers, sizeof(headers));
  if (!writer->failed) writer->failed = fseek(writer->file, 0, SEEK_SET) != 0;
  put_header(writer, table);
}

/* Closes the file; what has gone wrong with it. */
static o3_status_t finish(writer_t *writer, const o3_weight_list_t *list) {
  bool ok = writer->file && !writer->failed;
  int error = errno;
  if (writer->file && fclose(writer->file) && ok) {
    ok = false;
    error = errno;
  }
  if (ok) return NULL;
  return o3_status_create(O3_STATUS_IO, "cannot write the weights (%llu bytes) to '%s': %s",
                          (unsigned long long)list->total_bytes, writer->path, strerror(error));
}

o3_status_t o3_weights_object_write(const char *path, const o3_weight_list_t *list, bool bytes) {
  writer_t writer = {.file = fopen(path, "wbe"), .path = path};
  if (writer.file) put_object(&writer, list, bytes);
  return finish(&writer, list);
}

/* ---- The library ---- */

/* A linked library, changed in memory: it is small without its weights. */
typedef struct library {
  uint8_t *data;
  size_t size;
  Elf64_Ehdr *header;
  Elf64_Phdr *segments;
  Elf64_Shdr *sections, *weights; /* NULL: no code refers to weights, or there are none */
  Elf64_Phdr *segment;            /* that the weights end */
  uint64_t end, at, shift; /* in the file: the segment's end, the weights; what lies from end on moves */
} library_t;

static void find_weights(library_t *self) {
  const char *names = (const char *)self->data + self->sections[self->header->e_shstrndx].sh_offset;
  for (int i = 0; i < self->header->e_shnum; ++i) {
    Elf64_Shdr *section = &self->sections[i];
    if (section->sh_size && !strcmp(names + section->sh_name, WEIGHTS_SECTION)) self->weights = section;
  }
  for (int i = 0; self->weights && i < self->header->e_phnum; ++i) {
    Elf64_Phdr *segment = &self->segments[i];
    bool holds = segment->p_type == PT_LOAD && segment->p_vaddr <= self->weights->sh_addr &&
                 self->weights->sh_addr - segment->p_vaddr < segment->p_memsz;
    if (holds) self->segment = segment;
  }
}

static o3_status_t check_place(library_t *self, const o3_weight_list_t *list) {
  const Elf64_Shdr *weights = self->weights;
  const Elf64_Phdr *segment = self->segment;
  bool fits = segment && weights->sh_type == SHT_NOBITS && weights->sh_size == section_size(list) &&
              weights->sh_addr + weights->sh_size == segment->p_vaddr + segment->p_memsz &&
              segment->p_vaddr + segment->p_filesz <= weights->sh_addr;
  if (!fits)
    return o3_status_create(O3_STATUS_INTERNAL, "the linker has not put " WEIGHTS_SECTION
                                                " at the end of a segment of the library");
  self->end = segment->p_offset + segment->p_filesz;
  self->at = segment->p_offset + (weights->sh_addr - segment->p_vaddr);
  return NULL;
}

static void move_rest(library_t *self) {
  uint64_t page = 1;
  for (int i = 0; i < self->header->e_phnum; ++i)
    if (self->segments[i].p_align > page) page = self->segments[i].p_align;
  self->shift = (self->at + self->weights->sh_size - self->end + page - 1) / page * page;
  for (int i = 0; i < self->header->e_phnum; ++i)
    if (self->segments[i].p_offset >= self->end) self->segments[i].p_offset += self->shift;
  for (int i = 0; i < self->header->e_shnum; ++i)
    if (self->sections[i].sh_offset >= self->end) self->sections[i].sh_offset += self->shift;
  self->header->e_shoff += self->shift;
  self->segment->p_filesz = self->segment->p_memsz;
  self->weights->sh_offset = self->at;
  self->weights->sh_type = SHT_PROGBITS;
}

static void put_zeros(writer_t *writer, uint64_t until) {
  static const uint8_t zeros[4096];
  while (!writer->failed && writer->offset < until) {
    uint64_t left = until - writer->offset;
    put(writer, zeros, left < sizeof(zeros) ? left : sizeof(zeros));
  }
}

static void put_library(writer_t *writer, const library_t *self, const o3_weight_list_t *list) {
  put(writer, self->data, self->end);
  put_zeros(writer, self->at);
  put_weights(writer, list);
  put_zeros(writer, self->end + self->shift);
  put(writer, self->data + self->end, self->size - self->end);
}

static o3_status_t write_library(library_t *self, const char *linked, const char *path,
                                 const o3_weight_list_t *list) {
  struct stat info;
  self->header = (Elf64_Ehdr *)self->data;
  self->segments = (Elf64_Phdr *)(self->data + self->header->e_phoff);
  self->sections = (Elf64_Shdr *)(self->data + self->header->e_shoff);
  self->end = self->at = self->size;
  find_weights(self);
  if (self->weights) {
    O3_TRY(check_place(self, list));
    move_rest(self);
  }
  const o3_weight_list_t none = {0};
  writer_t writer = {.file = fopen(path, "wbe"), .path = path};
  if (writer.file) writer.failed = stat(linked, &info) || fchmod(fileno(writer.file), info.st_mode);
  if (writer.file) put_library(&writer, self, self->weights ? list : &none);
  return finish(&writer, list);
}

o3_status_t o3_weights_library_write(const char *linked, const char *path, const o3_weight_list_t *list) {
  o3_mapped_file_t file;
  O3_TRY(o3_file_map(linked, &file));
  library_t library = {.data = malloc(file.size), .size = file.size};
  if (library.data) memcpy(library.data, file.data, file.size);
  o3_file_unmap(&file);
  o3_status_t status = library.data ? write_library(&library, linked, path, list)
                                    : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  free(library.data);
  return status;
}
