/* Packaging without a compiler: the code is a few lines of LLVM IR, the library is loaded and asked back. */
#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <llvm-c/Core.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "o3/model.h"
#include "package/package.h"
#include "package/weights_object.h"
#include "runtime/compiled.h"
#include "unit.h"

/* y is the weight itself; the guard wants N = 4. */
static const char CODE[] =
    "target triple = \"x86_64-unknown-linux-gnu\"\n"
    "@o3w_first = external hidden constant [3 x float], code_model \"large\"\n"
    "@o3w_second = external hidden constant [2 x float], code_model \"large\"\n"
    "define hidden void @o3m_run(ptr %session, ptr %inputs, ptr %outputs) {\n"
    "  %y = load ptr, ptr %outputs\n"
    "  store ptr @o3w_second, ptr %y\n"
    "  %aligned = getelementptr i8, ptr %y, i64 8\n  store ptr @o3w_second, ptr %aligned\n"
    "  %offset = getelementptr i8, ptr %y, i64 16\n  store i64 0, ptr %offset\n"
    "  %size = getelementptr i8, ptr %y, i64 24\n  store i64 2, ptr %size\n"
    "  %stride = getelementptr i8, ptr %y, i64 32\n  store i64 1, ptr %stride\n"
    "  ret void\n}\n"
    "define hidden i32 @o3m_check(ptr %symbols) {\n"
    "  %n = load i64, ptr %symbols\n  %ok = icmp eq i64 %n, 4\n  %r = select i1 %ok, i32 -1, i32 0\n  ret "
    "i32 %r\n}\n";

static const char MODULE[] =
    "module attributes {"
    "  o3.kernels = [{name = \"k0\", kind = \"rows\", nodes = [\"Softmax_0\", \"Mul_1\"]}],"
    "  o3.weights = [{symbol = \"o3w_first\", value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>},"
    "                {symbol = \"o3w_second\", value = dense<[5.0, 6.0]> : tensor<2xf32>}],"
    "  o3.interface = {"
    "    inputs = [{name = \"x\", type = tensor<?x3xf32>, shape = affine_map<()[s0] -> (s0, 3)>}],"
    "    outputs = [{name = \"y\", type = tensor<2xf32>}],"
    "    symbols = [\"N\"], guards = [\"N must be 4\"]}} {}";

static const o3_target_t TARGET = {.name = "test-target", .cpu_features = 1};

typedef struct fixture {
  MlirContext context;
  o3_arena_t *arena;
  o3_weights_t *weights;
  MlirModule module;
  o3_interface_t interface;
  o3_artifact_t object;
  char *folder;
  o3_pass_env_t env;
} fixture_t;

static void assemble(o3_artifact_t *object) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  LLVMContextRef context = LLVMContextCreate();
  LLVMModuleRef module;
  char *message = NULL;
  LLVMMemoryBufferRef text = LLVMCreateMemoryBufferWithMemoryRangeCopy(CODE, sizeof(CODE) - 1, "code"), bytes;
  if (LLVMParseIRInContext(context, text, &module, &message)) fail_msg("%s", message);
  LLVMTargetRef target;
  assert_false(LLVMGetTargetFromTriple("x86_64-unknown-linux-gnu", &target, &message));
  LLVMTargetMachineRef machine =
      LLVMCreateTargetMachine(target, "x86_64-unknown-linux-gnu", "x86-64", "", LLVMCodeGenLevelDefault,
                              LLVMRelocPIC, LLVMCodeModelSmall);
  assert_false(LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMObjectFile, &message, &bytes));
  object->size = LLVMGetBufferSize(bytes);
  object->data = malloc(object->size);
  assert_non_null(object->data);
  memcpy(object->data, LLVMGetBufferStart(bytes), object->size);
  LLVMDisposeMemoryBuffer(bytes);
  LLVMDisposeTargetMachine(machine);
  LLVMDisposeModule(module);
  LLVMContextDispose(context);
}

static int set_up(void **state) {
  static fixture_t f;
  f = (fixture_t){.arena = o3_arena_create()};
  assert_ok(o3_context_create(&f.context));
  assert_ok(o3_weights_create(f.context, &f.weights));
  f.module = mlirModuleCreateParse(f.context, O3_STR(MODULE));
  assert_false(mlirModuleIsNull(f.module));
  assert_ok(o3_interface_read(f.arena, f.module, &f.interface));
  assemble(&f.object);
  assert_ok(o3_file_temp_dir_create(&f.folder));
  f.env = (o3_pass_env_t){.context = f.context, .arena = f.arena, .weights = f.weights, .opt_level = 1};
  *state = &f;
  return 0;
}

static int tear_down(void **state) {
  fixture_t *f = *state;
  o3_file_temp_dir_remove(f->folder);
  free(f->folder);
  free(f->object.data);
  mlirModuleDestroy(f->module);
  o3_weights_destroy(f->weights);
  o3_context_destroy(f->context);
  o3_arena_destroy(f->arena);
  return 0;
}

static const char *in_folder(const fixture_t *f, const char *name) {
  return o3_arena_printf(f->arena, "%s/%s", f->folder, name);
}

static o3_status_t make(fixture_t *f, const char *output, o3_package_kind_t kind, const char *prefix) {
  o3_package_t package = {.link = {.kind = kind, .prefix = prefix, .threads = 1},
                          .output = output,
                          .name = "net",
                          .options = "",
                          .target = &TARGET,
                          .interface = &f->interface,
                          .num_objects = 1,
                          .objects = &f->object};
  O3_TRY(o3_workspace_create(output, &package.workspace));
  o3_status_t status = o3_package(&f->env, f->module, &package);
  o3_workspace_destroy(package.workspace);
  return status;
}

static int count_files(const char *folder) {
  int count = -2; /* . and .. */
  DIR *dir = opendir(folder);
  while (readdir(dir)) ++count;
  closedir(dir);
  return count;
}

static void check_kernels(const o3_model_t *model) {
  o3_kernel_info_t kernel;
  assert_int_equal(o3_kernel_info(model, 0, &kernel), O3_OK);
  assert_string_equal(kernel.name, "k0");
  assert_string_equal(kernel.kind, "rows");
  assert_int_equal(kernel.num_nodes, 2);
  assert_string_equal(kernel.nodes[1], "Mul_1");
  assert_int_equal(o3_kernel_info(model, 1, &kernel), O3_ERROR_INVALID_ARGUMENT);
}

static void check_info(const o3_model_t *model) {
  check_kernels(model);
  o3_model_info_t info;
  o3_tensor_info_t x, y;
  o3_model_info(model, &info);
  assert_string_equal(info.name, "net");
  assert_string_equal(info.target, "test-target");
  assert_string_equal(info.producer, "o3c " O3_VERSION);
  assert_int_equal(strlen(info.build_id), 32);
  assert_int_equal(info.opt_level, 1);
  assert_int_equal(info.num_inputs, 1);
  assert_int_equal(info.num_outputs, 1);
  assert_int_equal(info.constant_bytes, 20);
  assert_int_equal(o3_input_info(model, 0, &x), O3_OK);
  assert_string_equal(x.name, "x");
  assert_int_equal(x.dtype, O3_FLOAT32);
  assert_int_equal(x.rank, 2);
  assert_int_equal(x.shape[0], -1);
  assert_string_equal(x.symbols[0], "N");
  assert_int_equal(x.shape[1], 3);
  assert_null(x.symbols[1]);
  assert_int_equal(o3_output_info(model, 0, &y), O3_OK);
  assert_int_equal(y.shape[0], 2);
}

static void check_run(const o3_model_t *model) {
  float data[12] = {0};
  o3_session_t *session;
  assert_int_equal(o3_session_create(model, NULL, &session), O3_OK);
  o3_tensor_t in = {.data = data, .dtype = O3_FLOAT32, .rank = 2, .shape = {4, 3}}, out = {0};
  assert_int_equal(o3_session_run(session, &in, 1, &out, 1), O3_OK);
  assert_true(((float *)out.data)[0] == 5.0f && ((float *)out.data)[1] == 6.0f);
  in.shape[0] = 2;
  out = (o3_tensor_t){0};
  assert_int_equal(o3_session_run(session, &in, 1, &out, 1), O3_ERROR_INVALID_ARGUMENT);
  unit_assert_contains(o3_session_error(session), "N must be 4");
  o3_session_destroy(session);
}

static void a_library_describes_and_runs_the_model(void **state) {
  fixture_t *f = *state;
  const char *path = in_folder(f, "net.so");
  assert_ok(make(f, path, O3_PACKAGE_LIBRARY, "my_net"));
  assert_int_equal(count_files(f->folder), 1);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) fail_msg("%s", dlerror());
  o3_model_fn_t function = (o3_model_fn_t)(uintptr_t)dlsym(library, "my_net_model");
  assert_non_null(function);
  static const char *const HIDDEN[] = {"o3_model", "o3rt_compiled_model", "o3rt_api", "o3m_run", "o3w_first"};
  for (size_t i = 0; i < sizeof(HIDDEN) / sizeof(HIDDEN[0]); ++i) assert_null(dlsym(library, HIDDEN[i]));
  check_info(function());
  check_run(function());
  dlclose(library);
}

static void assert_same_files(const char *a, const char *b) {
  o3_mapped_file_t first, second;
  assert_ok(o3_file_map(a, &first));
  assert_ok(o3_file_map(b, &second));
  assert_int_equal(first.size, second.size);
  assert_memory_equal(first.data, second.data, first.size);
  o3_file_unmap(&first);
  o3_file_unmap(&second);
}

static void the_same_input_gives_the_same_bytes(void **state) {
  static const struct {
    o3_package_kind_t kind;
    const char *first, *second;
  } KINDS[] = {{O3_PACKAGE_LIBRARY, "a.so", "b.so"},
               {O3_PACKAGE_ARCHIVE, "a.a", "b.a"},
               {O3_PACKAGE_OBJECT, "a.o", "b.o"}};
  fixture_t *f = *state;
  for (size_t i = 0; i < 3; ++i) {
    const char *first = in_folder(f, KINDS[i].first), *second = in_folder(f, KINDS[i].second);
    assert_ok(make(f, first, KINDS[i].kind, "o3"));
    assert_ok(make(f, second, KINDS[i].kind, "o3"));
    assert_same_files(first, second);
  }
}

/* Of an object's global symbols the model's function is the only one that is defined. */
static void assert_one_definition(const uint8_t *data, const char *name) {
  const Elf64_Ehdr *header = (const Elf64_Ehdr *)data;
  const Elf64_Shdr *sections = (const Elf64_Shdr *)(data + header->e_shoff);
  int found = 0;
  for (int i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const Elf64_Sym *symbols = (const Elf64_Sym *)(data + sections[i].sh_offset);
    const char *names = (const char *)(data + sections[sections[i].sh_link].sh_offset);
    for (size_t k = 0; k < sections[i].sh_size / sizeof(Elf64_Sym); ++k) {
      if (ELF64_ST_BIND(symbols[k].st_info) == STB_LOCAL || symbols[k].st_shndx == SHN_UNDEF) continue;
      assert_string_equal(names + symbols[k].st_name, name);
      ++found;
    }
  }
  assert_int_equal(found, 1);
}

static void an_object_hides_the_runtime(void **state) {
  fixture_t *f = *state;
  const char *path = in_folder(f, "net.o");
  o3_mapped_file_t file;
  assert_ok(make(f, path, O3_PACKAGE_OBJECT, "net"));
  assert_ok(o3_file_map(path, &file));
  assert_one_definition(file.data, "net_model");
  o3_file_unmap(&file);
}

static void an_archive_has_a_header(void **state) {
  fixture_t *f = *state;
  o3_mapped_file_t file;
  assert_ok(make(f, in_folder(f, "net.v2.a"), O3_PACKAGE_ARCHIVE, "net"));
  assert_int_equal(count_files(f->folder), 2);
  assert_ok(o3_file_map(in_folder(f, "net.v2.h"), &file));
  const char *text = o3_arena_strndup(f->arena, (const char *)file.data, file.size);
  unit_assert_contains(text, "O3_DECLARE_MODEL(net);");
  unit_assert_contains(text, "struct o3_model_info");
  o3_file_unmap(&file);
}

static void linker_errors_are_told(void **state) {
  fixture_t *f = *state;
  mlirOperationRemoveDiscardableAttributeByName(mlirModuleGetOperation(f->module), O3_STR("o3.weights"));
  assert_fails(make(f, in_folder(f, "net.so"), O3_PACKAGE_LIBRARY, "o3"), O3_STATUS_INTERNAL, "o3w_second");
  assert_int_equal(count_files(f->folder), 0);
}

static void prefixes_are_c_identifiers(void **state) {
  static const char *const BAD[] = {"", "1net", "my-net", "n\xc3\xa9t", "a b"};
  fixture_t *f = *state;
  for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); ++i)
    assert_fails(make(f, in_folder(f, "net.so"), O3_PACKAGE_LIBRARY, BAD[i]), O3_STATUS_INVALID_ARGUMENT,
                 "is no C identifier");
  assert_int_equal(count_files(f->folder), 0);
}

/* ---- The weights object by itself ---- */

static void weights_lie_where_their_symbols_say(void **state) {
  fixture_t *f = *state;
  uint8_t bytes[300];
  for (int i = 0; i < 300; ++i) bytes[i] = (uint8_t)i;
  o3_weight_t items[] = {
      {"o3w_a", bytes, 300}, {"o3w_empty", bytes, 0}, {"o3w_b", bytes + 1, 7}, {"o3w_c", bytes, 64}};
  o3_weight_list_t list = {.items = items, .count = 4, .total_bytes = 371};
  const char *path = in_folder(f, "w.o");
  assert_ok(o3_weights_object_write(path, &list, true));
  o3_mapped_file_t file;
  assert_ok(o3_file_map(path, &file));
  const Elf64_Ehdr *header = (const Elf64_Ehdr *)file.data;
  const Elf64_Shdr *sections = (const Elf64_Shdr *)(file.data + header->e_shoff);
  assert_int_equal(sections[1].sh_flags, SHF_ALLOC | 0x10000000);
  assert_int_equal(sections[1].sh_offset % 64, 0);
  const Elf64_Sym *symbols = (const Elf64_Sym *)(file.data + sections[2].sh_offset);
  const char *names = (const char *)(file.data + sections[3].sh_offset);
  for (int i = 0; i < 4; ++i) {
    const Elf64_Sym *symbol = &symbols[i + 1];
    assert_string_equal(names + symbol->st_name, items[i].symbol);
    assert_int_equal(symbol->st_size, items[i].bytes);
    assert_int_equal(symbol->st_value % 64, 0);
    assert_int_equal(ELF64_ST_VISIBILITY(symbol->st_other), STV_HIDDEN);
    assert_memory_equal(file.data + sections[1].sh_offset + symbol->st_value, items[i].data, items[i].bytes);
  }
  o3_file_unmap(&file);
  assert_ok(o3_weights_object_write(path, &list, false));
  assert_ok(o3_file_map(path, &file));
  assert_true(file.size < 1200);
  /* Its section lies at the end of no segment. */
  assert_fails(o3_weights_library_write(path, in_folder(f, "net.so"), &list), O3_STATUS_INTERNAL, ".lrodata");
  o3_file_unmap(&file);
}

static void weights_that_cannot_be_written_are_an_error(void **state) {
  fixture_t *f = *state;
  o3_weight_t item = {"o3w_a", CODE, sizeof(CODE)};
  o3_weight_list_t list = {.items = &item, .count = 1, .total_bytes = sizeof(CODE)};
  assert_fails(o3_weights_object_write(in_folder(f, "no/w.o"), &list, true), O3_STATUS_IO,
               "cannot write the weights");
  assert_fails(o3_weights_object_write("/dev/full", &list, true), O3_STATUS_IO, "No space left");
}

/* ---- The workspace ---- */

static void outputs_that_cannot_be_are_refused_at_once(void **state) {
  fixture_t *f = *state;
  o3_workspace_t *workspace;
  assert_fails(o3_workspace_create(in_folder(f, "no/such/net.so"), &workspace), O3_STATUS_NOT_FOUND,
               "no/such/");
  assert_fails(o3_workspace_create(f->folder, &workspace), O3_STATUS_IO, "it is a directory");
  assert_fails(o3_workspace_create("/dev/null", &workspace), O3_STATUS_IO, "it is a device or pipe");
}

static void an_old_output_stays_until_the_new_one_is_there(void **state) {
  fixture_t *f = *state;
  const char *path = in_folder(f, "net.so"), *link = in_folder(f, "link.so");
  struct stat info;
  assert_ok(o3_file_write(path, "old", 3));
  assert_int_equal(symlink("net.so", link), 0);
  assert_fails(make(f, path, O3_PACKAGE_LIBRARY, "1"), O3_STATUS_INVALID_ARGUMENT, "identifier");
  assert_int_equal(stat(path, &info), 0);
  assert_int_equal(info.st_size, 3);
  assert_ok(make(f, link, O3_PACKAGE_LIBRARY, "o3"));
  assert_int_equal(lstat(link, &info), 0);
  assert_true(S_ISLNK(info.st_mode)); /* the link stays, what it points to is replaced */
  assert_int_equal(stat(path, &info), 0);
  assert_true(info.st_size > 3);
}

static void abandoned_workspaces_leave_nothing(void **state) {
  fixture_t *f = *state;
  o3_workspace_t *workspace;
  assert_ok(o3_workspace_create(in_folder(f, "net.so"), &workspace));
  assert_ok(o3_workspace_write(workspace, O3_WORK_FILE_MODEL, "x", 1));
  assert_int_equal(count_files(f->folder), 1);
  o3_workspaces_abandon();
  assert_int_equal(count_files(f->folder), 0);
  o3_workspace_destroy(workspace);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
      TEST(a_library_describes_and_runs_the_model),
      TEST(the_same_input_gives_the_same_bytes),
      TEST(an_object_hides_the_runtime),
      TEST(an_archive_has_a_header),
      TEST(linker_errors_are_told),
      TEST(prefixes_are_c_identifiers),
      TEST(weights_lie_where_their_symbols_say),
      TEST(weights_that_cannot_be_written_are_an_error),
      TEST(outputs_that_cannot_be_are_refused_at_once),
      TEST(an_old_output_stays_until_the_new_one_is_there),
      TEST(abandoned_workspaces_leave_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
