fake model.so
tensor x.npy float32 2,3 0 1 2 3 4 5
tensor mask.npy bool 2 1 0
tensor ids.npy int32 2 40 2
tensor ids.pb ids int32 2 40 2
tensor typed.pb typed:ids int32 2 -5 2
expected="output 'y/1': float32 [2,3] min 1 max 6 mean 3.5 argmax 2,2
  1 2 3 4 5 6
output 'sum': int64 [] min 42 max 42 mean 42
  42
output 'yes': bool [2] min 0 max 1 mean 0.5
  1 0"
run 0 "$O3_RUN" model.so -i x.npy -i mask.npy -i ids.npy
out_is "$expected"
run 0 "$O3_RUN" -i ids/0=ids.pb --input=mask=mask.npy model.so --input x.npy
out_is "$expected"
tensor all.npz mask bool 2 1 0 -- x float32 2,3 0 1 2 3 4 5 -- ids/0 int32 2 40 2
run 0 "$O3_RUN" model.so -i all.npz --repeat 3 --threads 1 --spin-us -1
out_is "$expected"
run 0 "$O3_RUN" model.so -i x.npy -i mask.npy -i typed.pb
out_has "output 'sum': int64 [] min -3 max -3 mean -3"
# A path that holds '=' and an empty batch.
mkdir a=b
tensor a=b/x.npy float32 0,3
tensor none.npy bool 0
tensor none.pb ids int32 0
run 0 "$O3_RUN" model.so -i a=b/x.npy -i none.npy -i none.pb
out_has "output 'y/1': float32 [0,3]
  no elements"

input_error() {
  local message=$1
  shift
  run 1 "$O3_RUN" model.so "$@"
  out_is ""
  err_is "o3-run: error: $message"
}
input_error "invalid argument: input 'mask' is not given: use --input, --inputs-dir or --random" -i x.npy
input_error "not found: the model has no input 'z', it has: 'x', 'mask', 'ids/0'" -i z=x.npy
input_error "invalid argument: 'x.npy': input 'x' is given twice" -i x.npy -i x=x.npy
input_error "invalid argument: 'x.npy': one file too many: the model has 3 inputs" -i x.npy -i mask.npy -i ids.npy -i x.npy
input_error "invalid argument: 'all.npz': it has 3 arrays, one expected for input 'x'" -i x=all.npz
tensor other.npz z float32 1 0
input_error "not found: 'other.npz': the model has no input 'z', it has: 'x', 'mask', 'ids/0'" -i other.npz
input_error "invalid argument: 'x.txt' is no tensor file: its name must end in .npy, .npz or .pb" -i x.txt
tensor wrong.npy float32 2,4 0
input_error "invalid argument: input 'x' has a wrong type or shape" -i wrong.npy -i mask.npy -i ids.npy
head -c 90 x.npy >short.npy
input_error "invalid argument: 'short.npy': malformed .npy header: it has 118 bytes, the file has 80 left" -i short.npy
head -c 140 x.npy >cut.npy
input_error "invalid argument: 'cut.npy': the array's shape and type need 24 bytes, the file has 12" -i cut.npy
head -c 200 all.npz >cut.npz
run 1 "$O3_RUN" model.so -i cut.npz
err_has "o3-run: error: invalid argument: 'cut.npz': not a .npz file: "
echo junk >junk.pb
input_error "invalid argument: 'junk.pb': not an ONNX TensorProto: malformed protobuf" -i junk.pb
tensor two.npy bool 1 2
input_error "invalid argument: 'two.npy': boolean 0 is 2, 0 or 1 expected" -i mask=two.npy
