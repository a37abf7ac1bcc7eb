/* headline.h - how far off predictions are, for pages, reports and figures: data/headline.csv,
 * which `make accuracy` computes from the rows of first sights and of training runs. */
#ifndef DL_PREDICT_COMPARE_HEADLINE_H
#define DL_PREDICT_COMPARE_HEADLINE_H

#include "model/catalog/data.h"

/* "Mean error of the time on first sight 26 % (58 sources, 80 % of measurements inside the 80 %
 * interval); left out of the fit 8.6 % ...": the first sight first. "" without the file;
 * DL_ERR_INPUT for a broken one. */
enum dl_code dl_headline(const struct dl_data *data, struct dl_arena *arena, const char **out,
                         struct dl_err *err);

#endif
