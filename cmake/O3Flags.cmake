# o3_flags: the compile options and include paths of all our code but the runtime.
add_library(o3_flags INTERFACE)
target_compile_options(o3_flags INTERFACE
  $<$<COMPILE_LANGUAGE:C>:-Wall;-Wextra;-Werror;-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=>)
target_compile_definitions(o3_flags INTERFACE _GNU_SOURCE= O3_VERSION="${PROJECT_VERSION}")
target_include_directories(o3_flags INTERFACE
  ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR})
# A tool pays only for the shared libraries that it uses.
target_link_options(o3_flags INTERFACE -Wl,--as-needed)

if(O3_FUZZ AND NOT CMAKE_C_COMPILER_ID STREQUAL Clang)
  message(FATAL_ERROR "O3_FUZZ needs clang (-DCMAKE_C_COMPILER=clang-22), the compiler is ${CMAKE_C_COMPILER_ID}")
endif()

set(o3_sanitizers "")
if(O3_FUZZ)
  set(o3_sanitizers -fsanitize=fuzzer-no-link,address,undefined)
elseif(O3_SANITIZE)
  set(o3_sanitizers -fsanitize=address,undefined)
endif()
if(o3_sanitizers)
  target_compile_options(o3_flags INTERFACE
    $<$<COMPILE_LANGUAGE:C>:${o3_sanitizers};-fno-sanitize-recover=undefined;-fno-omit-frame-pointer>)
  target_link_options(o3_flags INTERFACE ${o3_sanitizers})
endif()
