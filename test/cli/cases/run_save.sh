fake model.so
tensor in.npz x float32 2,3 0 1 2 3 4 5 -- mask bool 2 1 0 -- ids/0 int32 2 40 2
run 0 "$O3_RUN" model.so -i in.npz --save out
tensor y.npy float32 2,3 1 2 3 4 5 6
[ "$(ls out | tr '\n' ' ')" = "sum.npy y_1.npy yes.npy " ] || fail "files: $(ls out)"
[ "$(tail -c 24 out/y_1.npy | od -An -tf4 | tr -s ' \n' ' ')" = " 1 2 3 4 5 6 " ] || fail "values of y"
# What is written reads back equal.
run 0 "$O3_RUN" model.so -i in.npz -s out -e out/y_1.npy -e sum=out/sum.npy -e yes=out/yes.npy
run 0 "$O3_RUN" model.so -i in.npz --save out.npz
run 0 "$O3_RUN" model.so -i in.npz -e out.npz --rtol 0 --atol 0
out_has "0 of 6 elements outside"
python3 - <<'P'
import zipfile
names = zipfile.ZipFile("out.npz").namelist()
assert names == ["y/1.npy", "sum.npy", "yes.npy"], names
assert zipfile.ZipFile("out.npz").testzip() is None
P
run 1 "$O3_RUN" model.so -i in.npz --save none/out
err_is "o3-run: error: input/output error: cannot make the folder 'none/out': No such file or directory"
run 1 "$O3_RUN" model.so -i in.npz --save none/out.npz
err_has "o3-run: error: input/output error: cannot write 'none/out.npz': "

# A folder that nothing could be written to is not left; one that was there is.
run 1 bash -c 'ulimit -f 0; exec "$0" model.so -i in.npz --save new' "$O3_RUN"
[ ! -e new ] || fail "an empty folder is left"
mkdir old
run 1 bash -c 'ulimit -f 0; exec "$0" model.so -i in.npz --save old' "$O3_RUN"
[ -d old ] || fail "the folder that was there is gone"
