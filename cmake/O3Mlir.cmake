# o3_mlir: the C APIs of MLIR 22 and LLVM 22, found through llvm-config.
#
# libMLIR.so holds no C API: it lies in static archives, which need each other and then libMLIR.so.
# MLIR's own CMake targets for them drag the static C++ libraries in beside libMLIR.so, so the
# archives are named here.
#
# A program with the property O3_STATIC_LLVM takes LLVM and MLIR from their archives, where they are there: it
# starts in 9 ms, where the shared libraries need 40 for the names that are looked up and the addresses that are
# filled in. LLD, which o3c needs when it runs, links all of them: GNU ld takes five times as long over the archives.
if(NOT LLVM_CONFIG)
  find_program(o3_llvm_config NAMES llvm-config-22 REQUIRED NO_CACHE)
  set(LLVM_CONFIG ${o3_llvm_config} CACHE FILEPATH "llvm-config of LLVM/MLIR 22" FORCE)
endif()

function(o3_llvm_query flag out)
  execute_process(COMMAND ${LLVM_CONFIG} ${flag} OUTPUT_VARIABLE text OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
  set(${out} ${text} PARENT_SCOPE)
endfunction()

o3_llvm_query(--version O3_LLVM_VERSION)
o3_llvm_query(--bindir O3_LLVM_BINDIR)
o3_llvm_query(--libdir O3_LLVM_LIBDIR)
o3_llvm_query(--includedir O3_LLVM_INCLUDEDIR)
if(NOT O3_LLVM_VERSION MATCHES "^22\\.")
  message(FATAL_ERROR "${LLVM_CONFIG} is of LLVM ${O3_LLVM_VERSION}, 22 is needed")
endif()
file(GLOB o3_mlir_archives ${O3_LLVM_LIBDIR}/libMLIRCAPI*.a ${O3_LLVM_LIBDIR}/libMLIRRegisterAllDialects.a)
if(NOT o3_mlir_archives OR NOT EXISTS ${O3_LLVM_INCLUDEDIR}/mlir-c/IR.h)
  message(FATAL_ERROR "no MLIR C API beside ${LLVM_CONFIG}: libMLIRCAPI*.a wanted in ${O3_LLVM_LIBDIR}, "
    "mlir-c/IR.h in ${O3_LLVM_INCLUDEDIR} (Debian: libmlir-22-dev)")
endif()

if(NOT EXISTS ${O3_LLVM_BINDIR}/ld.lld)
  message(FATAL_ERROR "no ld.lld in ${O3_LLVM_BINDIR} (Debian: lld-22)")
endif()

file(GLOB o3_llvm_archives ${O3_LLVM_LIBDIR}/libMLIR*.a ${O3_LLVM_LIBDIR}/libLLVM*.a)
find_library(o3_zstd NAMES zstd libzstd.so.1 NO_CACHE)
find_library(o3_zlib NAMES z libz.so.1 NO_CACHE)
set(o3_can_be_static OFF)
if(EXISTS ${O3_LLVM_LIBDIR}/libMLIRIR.a AND EXISTS ${O3_LLVM_LIBDIR}/libLLVMX86CodeGen.a AND
    o3_zstd AND o3_zlib AND NOT O3_SANITIZE AND NOT O3_FUZZ)
  set(o3_can_be_static ON)
endif()

add_library(o3_mlir INTERFACE)
target_include_directories(o3_mlir SYSTEM INTERFACE ${O3_LLVM_INCLUDEDIR})
string(REPLACE ";" "," o3_mlir_group "${o3_mlir_archives}")
set(o3_static "$<AND:$<BOOL:${o3_can_be_static}>,$<BOOL:$<TARGET_PROPERTY:O3_STATIC_LLVM>>>")
target_link_libraries(o3_mlir INTERFACE
  "$<${o3_static}:${o3_llvm_archives};${o3_zstd};${o3_zlib}>"
  "$<$<NOT:${o3_static}>:$<LINK_GROUP:RESCAN,${o3_mlir_group}>;-L${O3_LLVM_LIBDIR};-lMLIR;-lLLVM-22>"
  -lstdc++ -lm)
target_link_options(o3_mlir INTERFACE
  -B${O3_LLVM_BINDIR} -fuse-ld=lld
  "$<${o3_static}:-no-pie;-Wl,--gc-sections>"
  "$<$<NOT:${o3_static}>:-Wl,-rpath,${O3_LLVM_LIBDIR}>")
