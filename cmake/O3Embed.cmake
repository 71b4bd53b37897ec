# o3_embed(target symbol file): links the bytes of |file| into |target| as read-only data, from
# |symbol|_begin to |symbol|_end (extern const unsigned char symbol_begin[], symbol_end[];), with a zero
# byte after the end so that text can be used as a string.
function(o3_embed target symbol file)
  set(O3_EMBED_SYMBOL ${symbol})
  set(O3_EMBED_FILE ${file})
  set(source ${CMAKE_BINARY_DIR}/embed/${symbol}.S)
  configure_file(${CMAKE_SOURCE_DIR}/cmake/embed.S.in ${source} @ONLY)
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS ${file})
  target_sources(${target} PRIVATE ${source})
endfunction()
