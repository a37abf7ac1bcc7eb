/* decimal.h - numbers in text, as strtod reads them. */
#ifndef DL_MODEL_CORE_DECIMAL_H
#define DL_MODEL_CORE_DECIMAL_H

/* The number at the beginning of the text, correctly rounded: what strtod returns in the "C" locale
 * for text that begins with a digit or a minus sign. *end_out: behind it. */
double dl_decimal(const char *text, const char **end_out);

/* What follows a number of at most 19 digits without an exponent, as JSON writes it, at the
 * beginning of the text; *out: the number, correctly rounded. NULL: it is another one, or none. */
const char *dl_decimal_plain(const char *text, double *out);

#endif
