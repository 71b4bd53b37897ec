#include "package/package.h"

#include <string.h>

#include "base/strbuf.h"
#include "package/build_id.h"
#include "package/descriptor.h"
#include "package/weights_object.h"
#include "schedule/gpu.h"

extern const unsigned char o3_embedded_model_header_begin[], o3_embedded_model_header_end[];

#define PRODUCER "o3c " O3_VERSION

/* Of everything that ends up in the file: what the model and the options differ in shows in one of these. */
static void identify(const o3_package_t *package, const o3_weight_list_t *weights, int opt_level,
                     char text[O3_BUILD_ID_LENGTH + 1]) {
  o3_build_id_t id;
  o3_build_id_init(&id);
  o3_build_id_add_text(&id, PRODUCER);
  o3_build_id_add_text(&id, package->target->name);
  o3_build_id_add_text(&id, package->options);
  o3_build_id_add_text(&id, package->name);
  o3_build_id_add(&id, &opt_level, sizeof(opt_level));
  for (int i = 0; i < package->num_objects; ++i)
    o3_build_id_add(&id, package->objects[i].data, package->objects[i].size);
  for (size_t i = 0; i < weights->count; ++i) {
    o3_build_id_add_text(&id, weights->items[i].symbol);
    o3_build_id_add(&id, weights->items[i].data, weights->items[i].bytes);
    o3_weights_count_read(weights->store, weights->items[i].bytes);
  }
  o3_build_id_finish(&id, text);
}

/* model.h, and after its include guard (two models' headers may meet) this model's own function. */
static o3_status_t write_header(const o3_package_t *package) {
  o3_strbuf_t text = O3_STRBUF_INIT;
  o3_strbuf_append(&text, (const char *)o3_embedded_model_header_begin,
                   (size_t)(o3_embedded_model_header_end - o3_embedded_model_header_begin));
  o3_strbuf_printf(
      &text,
      "\n/* The model '%s'. */\n#ifdef __cplusplus\nextern \"C\" {\n#endif\nO3_DECLARE_MODEL(%s);\n"
      "#ifdef __cplusplus\n}\n#endif\n",
      package->name, package->link.prefix);
  o3_status_t status =
      text.failed ? o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory")
                  : o3_workspace_write(package->workspace, O3_WORK_FILE_HEADER, text.text, text.length);
  o3_strbuf_deinit(&text);
  return status;
}

const char *o3_package_header_path(o3_arena_t *arena, const char *output) {
  const char *slash = strrchr(output, '/');
  const char *dot = strrchr(slash ? slash : output, '.');
  size_t stem = dot ? (size_t)(dot - output) : strlen(output);
  return o3_arena_printf(arena, "%.*s.h", (int)stem, output);
}

static o3_status_t publish(o3_arena_t *arena, const o3_package_t *package) {
  if (package->link.kind == O3_PACKAGE_ARCHIVE) {
    const char *header = o3_package_header_path(arena, package->output);
    O3_TRY_ALLOC(header);
    O3_TRY(write_header(package));
    O3_TRY(o3_workspace_publish(package->workspace, O3_WORK_FILE_HEADER, header));
  }
  return o3_workspace_publish(package->workspace, O3_WORK_FILE_RESULT, package->output);
}

static o3_status_t write_objects(const o3_package_t *package) {
  static const o3_work_file_t FILES[O3_TARGET_MAX_CODES] = {O3_WORK_FILE_MODEL, O3_WORK_FILE_MODEL_2};
  for (int i = 0; i < package->num_objects; ++i)
    O3_TRY(
        o3_workspace_write(package->workspace, FILES[i], package->objects[i].data, package->objects[i].size));
  return NULL;
}

/* What is linked, and what the runtime picks from, agree in number. */
static o3_status_t list_codes(o3_arena_t *arena, const o3_target_t *target, o3_descriptor_t *descriptor) {
  o3_code_row_t *rows = O3_ARENA_ARRAY(arena, o3_code_row_t, O3_TARGET_MAX_CODES);
  O3_TRY_ALLOC(rows);
  for (int i = 0; target->codes && target->codes[i]; ++i) {
    rows[i] = (o3_code_row_t){.name = target->codes[i]->name,
                              .suffix = o3_target_code_suffix(arena, target->codes[i]),
                              .cpu_features = target->codes[i]->cpu_features};
    O3_TRY_ALLOC(rows[i].suffix);
    descriptor->num_codes = i + 1;
  }
  descriptor->codes = rows;
  return NULL;
}

o3_status_t o3_package(o3_pass_env_t *env, MlirModule module, const o3_package_t *package) {
  o3_workspace_t *workspace = package->workspace;
  o3_weight_list_t weights;
  o3_kernel_table_t kernels;
  O3_TRY(o3_kernel_table_read(env->arena, module, &kernels));
  O3_TRY(o3_weight_list_read(env->arena, module, env->weights, &weights));
  bool is_library = package->link.kind == O3_PACKAGE_LIBRARY;
  O3_TRY(o3_weights_object_write(o3_workspace_path(workspace, O3_WORK_FILE_WEIGHTS), &weights, !is_library));
  O3_TRY(write_objects(package));
  char build_id[O3_BUILD_ID_LENGTH + 1];
  identify(package, &weights, env->opt_level, build_id);
  o3_descriptor_t descriptor = {
      .interface = package->interface,
      .kernels = &kernels,
      .prefix = package->link.prefix,
      .name = package->name,
      .target = env->machine && env->machine->gpu ? env->machine->gpu->name : package->target->name,
      .build_id = build_id,
      .producer = PRODUCER,
      .opt_level = env->opt_level,
      .cpu_features = package->target->cpu_features,
      .constant_bytes = weights.total_bytes,
      .on_gpu = env->machine && env->machine->gpu};
  O3_TRY(list_codes(env->arena, package->target, &descriptor));
  O3_TRY(o3_descriptor_write(o3_workspace_path(workspace, O3_WORK_FILE_DESCRIPTOR), &descriptor));
  o3_link_t link = package->link;
  link.num_objects = package->num_objects;
  link.build_id = build_id;
  O3_TRY(o3_link(workspace, env->arena, &link));
  if (is_library)
    O3_TRY(o3_weights_library_write(o3_workspace_path(workspace, O3_WORK_FILE_LINKED),
                                    o3_workspace_path(workspace, O3_WORK_FILE_RESULT), &weights));
  return publish(env->arena, package);
}
