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
