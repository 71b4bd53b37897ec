/* gpu_emulator IN.ll OUT.o: x86 code for the emulator (emulator.h) of a card's kernels, the LLVM IR that
 * `o3c -t CARD -o IN.ll` writes.
 *
 * Address spaces stay: x86 has pointers of 64 bits in those that are used. The block's shared memory is what
 * emu_shared() returns at the function's start. */
#include <llvm-c/Core.h>
#include <llvm-c/IRReader.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "target/llvm_code.h"

enum { MAX_SITES = 1 << 14, MAX_NAME = 1 << 15 };

typedef struct translation {
  o3_llvm_code_t code;
  LLVMBuilderRef builder;
  LLVMTypeRef word, ptr, void_type, call_type;
  LLVMValueRef call, shared; /* emu_call; the card's symbol of shared memory, or NULL */
  /* Of the function that is being translated: */
  LLVMValueRef sites[MAX_SITES], operands, results, base;
  unsigned num_sites, max_operands, max_results;
} translation_t;

static LLVMValueRef word_of(const translation_t *t, uint64_t value) {
  return LLVMConstInt(t->word, value, false);
}

static LLVMValueRef constant_global(const translation_t *t, LLVMValueRef value, const char *name) {
  LLVMValueRef global = LLVMAddGlobal(t->code.module, LLVMTypeOf(value), name);
  LLVMSetInitializer(global, value);
  if (!*name) LLVMSetLinkage(global, LLVMPrivateLinkage);
  return global;
}

static LLVMValueRef text_global(const translation_t *t, const char *text) {
  return constant_global(t, LLVMConstStringInContext2(t->code.context, text, strlen(text), false), "");
}

static LLVMValueRef record(const translation_t *t, LLVMValueRef *fields, unsigned count) {
  return LLVMConstStructInContext(t->code.context, fields, count, false);
}

static LLVMValueRef array_global(const translation_t *t, LLVMTypeRef type, LLVMValueRef *items,
                                 unsigned count) {
  return constant_global(t, LLVMConstArray2(type, items, count), "");
}

/* ---- Sites ---- */

/* Inline PTX up to its operands, or all of it. */
static void name_assembly(LLVMValueRef callee, char name[MAX_NAME]) {
  size_t length = 0;
  const char *text = LLVMGetInlineAsmAsmString(callee, &length);
  size_t word = *text == '{' ? length : strcspn(text, "$[{");
  while (word && text[word - 1] == ' ') --word;
  snprintf(name, MAX_NAME, "%.*s", (int)word, text);
}

/* Whether the call is of something that the card does. */
static bool name_site(LLVMValueRef call, char name[MAX_NAME]) {
  LLVMValueRef callee = LLVMGetCalledValue(call);
  size_t length = 0;
  if (LLVMIsAInlineAsm(callee)) {
    name_assembly(callee, name);
    return true;
  }
  snprintf(name, MAX_NAME, "%s", LLVMGetValueName2(callee, &length));
  return strncmp(name, "llvm.nvvm.", strlen("llvm.nvvm.")) == 0;
}

static LLVMValueRef site_global(translation_t *t, const char *name, unsigned operands, unsigned results) {
  LLVMValueRef null = LLVMConstNull(t->ptr);
  LLVMValueRef fields[] = {text_global(t, name), word_of(t, operands), word_of(t, results), null, null};
  LLVMValueRef site = constant_global(t, record(t, fields, 5), "");
  if (t->num_sites == MAX_SITES) return NULL;
  t->sites[t->num_sites++] = site;
  return site;
}

static LLVMValueRef slot(const translation_t *t, LLVMValueRef array, unsigned index) {
  LLVMValueRef at = word_of(t, index);
  return LLVMBuildGEP2(t->builder, t->word, array, &at, 1, "");
}

static LLVMValueRef take_results(const translation_t *t, LLVMTypeRef type) {
  if (LLVMGetTypeKind(type) != LLVMStructTypeKind) return LLVMBuildLoad2(t->builder, type, t->results, "");
  LLVMValueRef all = LLVMGetUndef(type);
  for (unsigned i = 0; i < LLVMCountStructElementTypes(type); ++i) {
    LLVMValueRef one =
        LLVMBuildLoad2(t->builder, LLVMStructGetTypeAtIndex(type, i), slot(t, t->results, i), "");
    all = LLVMBuildInsertValue(t->builder, all, one, i, "");
  }
  return all;
}

static unsigned count_results(LLVMTypeRef type) {
  if (LLVMGetTypeKind(type) == LLVMVoidTypeKind) return 0;
  return LLVMGetTypeKind(type) == LLVMStructTypeKind ? LLVMCountStructElementTypes(type) : 1;
}

/* A word for each operand; results are read right after the call, so that all sites share the arrays. */
static o3_status_t replace_site(translation_t *t, LLVMValueRef call, const char *name) {
  LLVMTypeRef type = LLVMTypeOf(call);
  unsigned count = LLVMGetNumArgOperands(call);
  LLVMValueRef site = site_global(t, name, count, count_results(type));
  if (!site) return o3_status_create(O3_STATUS_UNSUPPORTED, "more than %d sites in a kernel", MAX_SITES);
  LLVMPositionBuilderBefore(t->builder, call);
  for (unsigned i = 0; i < count; ++i)
    LLVMBuildStore(t->builder, LLVMGetArgOperand(call, i), slot(t, t->operands, i));
  LLVMValueRef arguments[] = {site, t->operands, t->results};
  LLVMBuildCall2(t->builder, t->call_type, t->call, arguments, 3, "");
  if (count > t->max_operands) t->max_operands = count;
  if (count_results(type)) {
    if (count_results(type) > t->max_results) t->max_results = count_results(type);
    LLVMReplaceAllUsesWith(call, take_results(t, type));
  }
  LLVMInstructionEraseFromParent(call);
  return NULL;
}

/* ---- Shared memory ---- */

/* |constant|, an expression with the symbol in it, as an instruction at the builder's place; NULL: it has an
 * operation that is not known. */
static LLVMValueRef materialise(const translation_t *t, LLVMValueRef constant) {
  if (constant == t->shared) return t->base;
  if (!LLVMIsAConstantExpr(constant)) return constant;
  LLVMValueRef inner = materialise(t, LLVMGetOperand(constant, 0));
  LLVMValueRef index = LLVMGetNumOperands(constant) > 1 ? LLVMGetOperand(constant, 1) : NULL;
  if (!inner) return NULL;
  switch (LLVMGetConstOpcode(constant)) {
    case LLVMGetElementPtr:
      if (LLVMGetNumOperands(constant) != 2) return NULL;
      return LLVMBuildGEP2(t->builder, LLVMGetGEPSourceElementType(constant), inner, &index, 1, "");
    case LLVMPtrToInt:
      return LLVMBuildPtrToInt(t->builder, inner, LLVMTypeOf(constant), "");
    case LLVMAddrSpaceCast:
      return LLVMBuildAddrSpaceCast(t->builder, inner, LLVMTypeOf(constant), "");
    case LLVMAdd:
      return LLVMBuildAdd(t->builder, inner, index, "");
    default:
      return NULL;
  }
}

static bool refers(const translation_t *t, LLVMValueRef value) {
  if (value == t->shared) return true;
  if (!LLVMIsAConstantExpr(value)) return false;
  for (int i = 0; i < LLVMGetNumOperands(value); ++i)
    if (refers(t, LLVMGetOperand(value, (unsigned)i))) return true;
  return false;
}

static o3_status_t move_shared(const translation_t *t, LLVMValueRef instruction) {
  for (int i = 0; t->shared && i < LLVMGetNumOperands(instruction); ++i) {
    LLVMValueRef operand = LLVMGetOperand(instruction, (unsigned)i);
    if (!refers(t, operand)) continue;
    LLVMPositionBuilderBefore(t->builder, LLVMGetNextInstruction(t->base));
    LLVMValueRef value = materialise(t, operand);
    if (!value) return o3_status_create(O3_STATUS_UNSUPPORTED, "an expression of shared memory");
    LLVMSetOperand(instruction, (unsigned)i, value);
  }
  return NULL;
}

/* ---- Functions ---- */

/* NaNs and infinities are computed with here, and nothing is reordered once more. */
static void plain_arithmetic(LLVMValueRef instruction) {
  if (LLVMCanValueUseFastMathFlags(instruction))
    LLVMSetFastMathFlags(instruction, LLVMGetFastMathFlags(instruction) & LLVMFastMathAllowContract);
}

static o3_status_t translate_instruction(translation_t *t, LLVMValueRef instruction) {
  char name[MAX_NAME];
  plain_arithmetic(instruction);
  O3_TRY(move_shared(t, instruction));
  if (!LLVMIsACallInst(instruction)) return NULL;
  if (name_site(instruction, name)) return replace_site(t, instruction, name);
  LLVMSetInstructionCallConv(instruction, LLVMCCallConv);
  return NULL;
}

static LLVMValueRef call_shared(const translation_t *t, LLVMTypeRef type) {
  LLVMTypeRef getter = LLVMFunctionType(t->ptr, NULL, 0, false);
  LLVMValueRef function = LLVMGetNamedFunction(t->code.module, "emu_shared");
  if (!function) function = LLVMAddFunction(t->code.module, "emu_shared", getter);
  LLVMValueRef base = LLVMBuildCall2(t->builder, getter, function, NULL, 0, "");
  return LLVMBuildAddrSpaceCast(t->builder, base, type, "");
}

/* The arrays get their sizes when all sites are known. */
static void begin_function(translation_t *t, LLVMValueRef function) {
  LLVMValueRef first = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(function));
  LLVMPositionBuilderBefore(t->builder, first);
  t->operands = LLVMBuildArrayAlloca(t->builder, t->word, word_of(t, 1), "operands");
  t->results = LLVMBuildArrayAlloca(t->builder, t->word, word_of(t, 1), "results");
  if (t->shared) t->base = call_shared(t, LLVMTypeOf(t->shared));
  t->max_operands = t->max_results = 1;
}

static o3_status_t translate_function(translation_t *t, LLVMValueRef function) {
  begin_function(t, function);
  LLVMValueRef started = t->shared ? t->base : t->results;
  for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block;
       block = LLVMGetNextBasicBlock(block)) {
    LLVMValueRef next = LLVMGetFirstInstruction(block);
    if (block == LLVMGetEntryBasicBlock(function)) next = LLVMGetNextInstruction(started);
    for (LLVMValueRef at = next; at; at = next) {
      next = LLVMGetNextInstruction(at);
      O3_TRY(translate_instruction(t, at));
    }
  }
  LLVMSetOperand(t->operands, 0, word_of(t, t->max_operands));
  LLVMSetOperand(t->results, 0, word_of(t, t->max_results));
  LLVMSetFunctionCallConv(function, LLVMCCallConv);
  return NULL;
}

/* ---- Kernels ---- */

static bool is_by_value(LLVMValueRef function, unsigned parameter, LLVMTypeRef *type) {
  unsigned kind = LLVMGetEnumAttributeKindForName("byval", strlen("byval"));
  LLVMAttributeRef attribute = LLVMGetEnumAttributeAtIndex(function, parameter + 1, kind);
  if (!attribute) return false;
  *type = LLVMGetTypeAttributeValue(attribute);
  LLVMRemoveEnumAttributeAtIndex(function, parameter + 1, kind);
  return true;
}

/* void enter(pointers to the parameters). A parameter by value is given by its place. */
static LLVMValueRef build_enter(const translation_t *t, LLVMValueRef kernel, LLVMValueRef *bytes) {
  LLVMTypeRef type = LLVMFunctionType(t->void_type, (LLVMTypeRef[]){t->ptr}, 1, false);
  LLVMValueRef enter = LLVMAddFunction(t->code.module, "", type), values[256];
  LLVMTargetDataRef layout = LLVMGetModuleDataLayout(t->code.module);
  LLVMSetLinkage(enter, LLVMInternalLinkage);
  LLVMPositionBuilderAtEnd(t->builder, LLVMAppendBasicBlockInContext(t->code.context, enter, ""));
  unsigned count = LLVMCountParams(kernel);
  for (unsigned i = 0; i < count; ++i) {
    LLVMTypeRef parameter = LLVMTypeOf(LLVMGetParam(kernel, i)), kept = parameter;
    LLVMValueRef at = word_of(t, i);
    at = LLVMBuildGEP2(t->builder, t->ptr, LLVMGetParam(enter, 0), &at, 1, "");
    values[i] = LLVMBuildLoad2(t->builder, t->ptr, at, "");
    if (!is_by_value(kernel, i, &kept)) values[i] = LLVMBuildLoad2(t->builder, parameter, values[i], "");
    bytes[i] = word_of(t, LLVMABISizeOfType(layout, kept));
  }
  LLVMBuildCall2(t->builder, LLVMGlobalGetValueType(kernel), kernel, values, count, "");
  LLVMBuildRetVoid(t->builder);
  return enter;
}

static LLVMValueRef kernel_record(translation_t *t, LLVMValueRef kernel) {
  size_t length = 0;
  LLVMValueRef bytes[256];
  unsigned count = LLVMCountParams(kernel);
  LLVMValueRef fields[] = {text_global(t, LLVMGetValueName2(kernel, &length)),
                           build_enter(t, kernel, bytes),
                           word_of(t, count),
                           array_global(t, t->word, bytes, count),
                           word_of(t, t->num_sites),
                           array_global(t, t->ptr, t->sites, t->num_sites)};
  LLVMSetLinkage(kernel, LLVMInternalLinkage);
  return record(t, fields, 6);
}

static LLVMValueRef last_record(const translation_t *t) {
  LLVMValueRef null = LLVMConstNull(t->ptr), zero = word_of(t, 0);
  LLVMValueRef fields[] = {null, null, zero, null, zero, null};
  return record(t, fields, 6);
}

static bool is_kernel(LLVMValueRef function) {
  return LLVMGetFunctionCallConv(function) == LLVMPTXKernelCallConv;
}

/* What kernels call: its sites are theirs, too. */
static o3_status_t translate_helpers(translation_t *t) {
  for (LLVMValueRef f = LLVMGetFirstFunction(t->code.module); f; f = LLVMGetNextFunction(f))
    if (!LLVMIsDeclaration(f) && !is_kernel(f)) O3_TRY(translate_function(t, f));
  return NULL;
}

static o3_status_t translate_module(translation_t *t) {
  LLVMValueRef records[4096];
  O3_TRY(translate_helpers(t));
  unsigned count = 0, shared_sites = t->num_sites;
  for (LLVMValueRef f = LLVMGetFirstFunction(t->code.module); f; f = LLVMGetNextFunction(f)) {
    if (LLVMIsDeclaration(f) || !is_kernel(f)) continue;
    if (count + 1 == sizeof(records) / sizeof(records[0]) || LLVMCountParams(f) > 256)
      return o3_status_create(O3_STATUS_UNSUPPORTED, "so many kernels or parameters");
    t->num_sites = shared_sites;
    O3_TRY(translate_function(t, f));
    records[count++] = kernel_record(t, f);
  }
  records[count++] = last_record(t);
  constant_global(t, LLVMConstArray2(LLVMTypeOf(records[0]), records, count), "emu_kernels");
  return NULL;
}

/* ---- Files ---- */

static o3_status_t read_module(translation_t *t, const char *path) {
  const o3_llvm_settings_t settings = {O3_LLVM_X86, "x86-64-v3", "", LLVMCodeGenLevelLess};
  LLVMMemoryBufferRef buffer = NULL;
  char *message = NULL;
  O3_TRY(o3_llvm_machine_create(&settings, &t->code.machine));
  t->code.context = LLVMContextCreate();
  if (LLVMCreateMemoryBufferWithContentsOfFile(path, &buffer, &message))
    return o3_llvm_failure(path, message);
  if (LLVMParseIRInContext(t->code.context, buffer, &t->code.module, &message))
    return o3_llvm_failure(path, message);
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(t->code.machine);
  LLVMSetModuleDataLayout(t->code.module, layout);
  LLVMDisposeTargetData(layout);
  LLVMSetTarget(t->code.module, "x86_64-unknown-linux-gnu");
  return NULL;
}

static void begin_module(translation_t *t) {
  LLVMContextRef context = t->code.context;
  t->builder = LLVMCreateBuilderInContext(context);
  t->word = LLVMInt64TypeInContext(context);
  t->ptr = LLVMPointerTypeInContext(context, 0);
  t->void_type = LLVMVoidTypeInContext(context);
  t->call_type = LLVMFunctionType(t->void_type, (LLVMTypeRef[]){t->ptr, t->ptr, t->ptr}, 3, false);
  t->call = LLVMAddFunction(t->code.module, "emu_call", t->call_type);
  t->shared = LLVMGetNamedGlobal(t->code.module, "o3_shared");
}

static o3_status_t translate(translation_t *t, const char *in, const char *out) {
  o3_artifact_t object = {0};
  O3_TRY(read_module(t, in));
  begin_module(t);
  O3_TRY(translate_module(t));
  O3_TRY(o3_llvm_code_optimise(&t->code, "sroa,early-cse,simplifycfg"));
  O3_TRY(o3_llvm_code_emit(&t->code, LLVMObjectFile, &object));
  o3_status_t status = o3_file_write(out, object.data, object.size);
  free(object.data);
  return status;
}

int main(int count, char **arguments) {
  static translation_t translation;
  if (count != 3) {
    fprintf(stderr, "usage: gpu_emulator IN.ll OUT.o\n");
    return 2;
  }
  o3_status_t status = translate(&translation, arguments[1], arguments[2]);
  if (translation.builder) LLVMDisposeBuilder(translation.builder);
  o3_llvm_code_deinit(&translation.code);
  if (!status) return 0;
  fprintf(stderr, "gpu_emulator: %s: %s\n", arguments[1], o3_status_message(status));
  o3_status_destroy(status);
  return 1;
}
