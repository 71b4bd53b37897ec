/* Declared types of graph inputs and outputs. */
#ifndef O3_IMPORT_ONNX_ONNX_TYPE_H
#define O3_IMPORT_ONNX_ONNX_TYPE_H

#include "base/map.h"
#include "ir/ir.h"
#include "onnx.pb-c.h"

/* The attributes {o3.name, o3.type, o3.dims} of a function's argument or result.
 *
 * o3.type is a TypeAttr for tensors that o3c reads, a string for all else ("sequence(tensor(float32))"),
 * absent when nothing is declared. o3.dims, of ranked tensors, holds a name for each dimension: "" where it
 * is static, a fresh one ("x.d0") where the file gives neither size nor name. |symbols| holds all names in
 * use. */
o3_status_t o3_onnx_value_info_import(MlirContext context, o3_arena_t *arena, o3_str_map_t *symbols,
                                      const Onnx__ValueInfoProto *info, MlirAttribute *attrs) O3_MUST_USE;

/* Enters the names of |info|'s dimensions into |symbols|: to be done for all before the first import. */
o3_status_t o3_onnx_value_info_symbols(o3_str_map_t *symbols, const Onnx__ValueInfoProto *info) O3_MUST_USE;

/* The text of a type, as ONNX writes it; in |arena|. */
o3_status_t o3_onnx_type_text(o3_arena_t *arena, const Onnx__TypeProto *type, const char **text) O3_MUST_USE;

#endif
