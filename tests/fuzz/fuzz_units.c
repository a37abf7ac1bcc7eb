/* fuzz_units.c - libFuzzer entry for quantities and lists. The first byte chooses the unit, the
 * rest is the text. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/units.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct dl_err err = {.code = DL_OK};
    int64_t values[32];
    size_t count = 0;
    double value = 0, back = 0;
    char printed[64];
    char *text;
    enum dl_unit unit;

    if (size == 0) return 0;
    unit = (enum dl_unit)(data[0] % DL_UNITS);
    text = malloc(size);
    if (text == NULL) return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if (dl_units_parse(text, unit, &value, &err) == DL_OK) {
        if (!isfinite(value)) abort();
        dl_units_format(value, unit, printed, sizeof printed);
        if (strlen(printed) + 1 >= sizeof printed) abort();
        /* beyond 2^53 a count is printed short */
        if (dl_units_parse(printed, unit, &back, &err) == DL_OK) {
            if (fabs(value) > 1e-300 && !(fabs(back - value) <= 0.0051 * fabs(value))) abort();
        } else if (fabs(value) < 1e15) {
            abort();
        }
    } else if (err.code != DL_ERR_USAGE || err.message[0] == '\0') {
        abort();
    }
    if (dl_list_parse(text, values, 32, &count, &err) == DL_OK) {
        if (count == 0 || count > 32) abort();
        for (size_t i = 0; i < count; i++)
            if (values[i] < 1 || values[i] > 1000000000) abort();
    }
    free(text);
    return 0;
}
