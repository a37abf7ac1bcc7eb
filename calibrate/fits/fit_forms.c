/* fit_forms.c - the features by which the distance of a kernel-time model may compare kernels. Not
 * here: the fit of each (fit_process.c). */
#include "calibrate/fits/fit_internal.h"

/* Samples that place more features than the sides; than bytes alone. */
enum { MANY = DL_FIT_MANY, OF_TWO = 30 };

/* Candidate features of the distance. Of several forms for an operation and pass, the one with the
 * highest posterior is used. */
enum units { ANY, VECTOR, MATRIX };
enum { ALL = 1 << DL_FORWARD | 1 << DL_BACKWARD_DATA | 1 << DL_BACKWARD_WEIGHTS | 1 << DL_UPDATE };
#define CONV "batch", "positions", "channels", "filters", "taps"
const struct dl_fit_form dl_fit_forms[] = {
    {DL_OP_GEMM,
     ALL,
     ANY,
     DL_DISTANCE_SQUARES,
     0,
     {"long_side", "short_side", "summed_side", "long_transposed", "short_transposed",
      "unaligned"}},
    {DL_OP_GEMM,
     ALL,
     ANY,
     DL_DISTANCE_SQUARES,
     MANY,
     {"long_side", "short_side", "summed_side", "long_transposed", "unaligned", "excess", "count",
      "blocks"}},
    {DL_OP_GEMM,
     ALL,
     ANY,
     DL_DISTANCE_MAGNITUDES,
     MANY,
     {"long_side", "short_side", "summed_side", "long_transposed", "unaligned", "excess", "count",
      "blocks"}},
    {DL_OP_ATTENTION,
     ALL,
     ANY,
     DL_DISTANCE_SQUARES,
     0,
     {"queries", "seen", "heads", "head_dim", "causal", "shared", "excess", "paged", "engine"}},
    {DL_OP_ATTENTION,
     ALL,
     ANY,
     DL_DISTANCE_MAGNITUDES,
     0,
     {"queries", "seen", "heads", "head_dim", "causal", "shared", "excess", "paged", "engine"}},
    /* The times of forward and weight-gradient convolutions change in steps with the shape, those
     * of data gradients less so. On matrix units, a weight gradient is one implicit GEMM, whose
     * sides determine the time; on vector units, the library selects algorithms by the dimensions
     * behind the sides. */
    {DL_OP_CONV,
     1 << DL_FORWARD,
     ANY,
     DL_DISTANCE_MAGNITUDES,
     0,
     {CONV, "stride", "excess", "waves", "square_3x3"}},
    {DL_OP_CONV,
     1 << DL_BACKWARD_DATA,
     ANY,
     DL_DISTANCE_SQUARES,
     0,
     {CONV, "stride", "excess", "waves", "square_3x3"}},
    {DL_OP_CONV,
     1 << DL_BACKWARD_WEIGHTS,
     VECTOR,
     DL_DISTANCE_MAGNITUDES,
     0,
     {CONV, "excess", "padding"}},
    {DL_OP_CONV,
     1 << DL_BACKWARD_WEIGHTS,
     MATRIX,
     DL_DISTANCE_MAGNITUDES,
     0,
     {"filters", "columns", "summed", "taps", "excess", "padding"}},
    {DL_OP_CONV,
     ALL,
     ANY,
     DL_DISTANCE_MAGNITUDES,
     MANY,
     {CONV, "stride", "excess", "waves", "square_3x3", "depth"}},
    {DL_OP_CONV,
     ALL,
     MATRIX,
     DL_DISTANCE_MAGNITUDES,
     MANY,
     {"filters", "columns", "summed", "taps", "excess", "padding", "stride", "batch", "waves",
      "depth"}},
    {DL_OP_STREAM, ALL, ANY, DL_DISTANCE_SQUARES, 0, {"bytes"}},
    {DL_OP_STREAM, ALL, ANY, DL_DISTANCE_SQUARES, OF_TWO, {"bytes", "vendor"}},
    {DL_OP_STREAM, ALL, ANY, DL_DISTANCE_SQUARES, OF_TWO, {"bytes", "elements"}},
    {DL_OP_STREAM, ALL, ANY, DL_DISTANCE_SQUARES, OF_TWO, {"bytes", "vendor", "compiled"}},
    {DL_OP_STREAM, ALL, ANY, DL_DISTANCE_SQUARES, OF_TWO, {"bytes", "vendor", "compiled", "rows"}},
};
const int dl_fit_form_count = sizeof dl_fit_forms / sizeof dl_fit_forms[0];

/* Samples that a form needs. Those of many sources have batched products, which the second form of
 * GEMMs tells apart. */
static size_t least_for(const struct dl_fit_form *form, const struct dl_fit_set *set) {
    const bool batched = set->of_many && form->op == DL_OP_GEMM && form->least_samples > 0 &&
                         form->distance == DL_DISTANCE_SQUARES;
    return batched ? OF_TWO : form->least_samples;
}

bool dl_fit_form_applies(const struct dl_fit_form *form, const struct dl_fit_set *set) {
    const enum units units = set->channel_multiple > 1.0 ? MATRIX : VECTOR;
    return form->op == set->op && (form->passes >> set->pass & 1U) != 0 &&
           (form->units == ANY || form->units == (int)units) && least_for(form, set) <= set->count;
}
