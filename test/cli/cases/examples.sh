# The examples, built as their first lines say but with all warnings, do what docs say of them.
images=$O3_ROOT/models/digits/test_images.npy labels=$O3_ROOT/models/digits/test_labels.npy
run 0 "$O3C" "$O3_ROOT/models/digits/digits_sparse.onnx" -q -o digits.so
warnings=(-pedantic -Wall -Wextra -Werror -I"$O3_ROOT/include" -Wl,-rpath,'$ORIGIN')

run 0 "${CC:-cc}" -std=c99 "${warnings[@]}" "$O3_ROOT/examples/classify.c" digits.so -o classify
run 0 ./classify "$images" "$labels"
out_is "356 of 360 right"
run 1 ./classify "$images" "$images"
err_is "classify: $images: does not fit the images"

cxx=${CXX:-$(command -v c++ || echo clang++-22)}
run 0 "$cxx" -std=c++17 "${warnings[@]}" "$O3_ROOT/examples/classify.cpp" digits.so -pthread -o classify_threads
run 0 ./classify_threads "$images" "$labels"
out_is "356 of 360 right"

# The compiler as a library, from the build folder in place of the installed one.
build=$(dirname "$(dirname "$O3C")")
[ -f "$build/o3.pc" ] || skip "$build/o3.pc is not there: no build folder"
flags=$(PKG_CONFIG_PATH=$build pkg-config --define-variable=libdir="$build/lib" \
  --define-variable=includedir="$O3_ROOT/include" --cflags --libs o3)
run 0 "${CC:-cc}" -std=c99 -pedantic -Wall -Wextra -Werror "$O3_ROOT/examples/compile.c" $flags -o compile
run 0 ./compile "$O3_ROOT/models/digits/digits_sparse.onnx" own.so
out_has "1 of 12: import"
out_has "input image: float32 batch 1 8 8
output logits: float32 batch 10"
run 0 "$O3C" "$O3_ROOT/models/digits/digits_sparse.onnx" -O3 -q -o same.so
cmp own.so same.so
run 1 ./compile missing.onnx own.so
err_is "compile: not found: model 'missing.onnx' does not exist"
