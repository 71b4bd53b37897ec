fake model.so
run 0 "$O3_RUN" model.so --random 5 --dim N=4 --int-range 7:7
out_has "output 'y/1': float32 [4,3]"
out_has "output 'sum': int64 [] min 28 max 28 mean 28"
cp "$CASE_TMP/stdout" first
run 0 "$O3_RUN" model.so --random=5 --dim N=4 --int-range 7:7
out_is "$(cat first)"
run 0 "$O3_RUN" model.so --random 6 --dim N=4 --int-range 7:7
! cmp -s first "$CASE_TMP/stdout" || fail "another seed gives the same values"
run 0 "$O3_RUN" model.so --random
out_has "output 'y/1': float32 [1,3]"
# A given input binds N; the others follow it.
tensor mask.npy bool 5 1
run 0 "$O3_RUN" model.so --random --input mask=mask.npy
out_has "output 'y/1': float32 [5,3]"
run 0 "$O3_RUN" model.so --random --input mask=mask.npy --dim N=5
run 1 "$O3_RUN" model.so --random --input mask=mask.npy --dim N=4
err_is "o3-run: error: invalid argument: --dim 'N=4': the given inputs have 5"
run 1 "$O3_RUN" model.so --random --dim M=4
err_is "o3-run: error: invalid argument: --dim 'M=4' is not NAME=SIZE for a symbolic dimension of the model's inputs"
run 2 "$O3_RUN" model.so --dim N=-4
err_has "dimension 'N=-4' is not of the form NAME=SIZE"
run 2 "$O3_RUN" model.so --random --dim N=9223372036854775808
err_has "dimension 'N=9223372036854775808': the size is above 9223372036854775807"
run 1 "$O3_RUN" model.so --random --dim N=9000000000000000000
err_has "o3-run: error: invalid argument: input 'x': the shape has more than 9223372036854775807 bytes"
