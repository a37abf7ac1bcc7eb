/* rates.c - see the header. */
#include "predict/inputs/rates.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/core/text.h"

struct asked {
    const char *price;
    double node_w, carbon_g_per_kwh;
};
#define ASKED(member) struct asked, member

const struct dl_option dl_rates_options[] = {
    {"price", 0, "AMOUNT", "Cost",
     "price of a node per hour, e.g. 24.5 or 24.5USD; default: that of the system's file",
     DL_TEXT(ASKED(price))},
    {"power", 0, "WATT", "Cost",
     "power of a node under load; default: modelled from its devices (help theory F-POWER)",
     DL_NUMBER(ASKED(node_w), .unit = DL_UNIT_W, .min = 0.1, .max = 1e7)},
    {"carbon", 0, "G/KWH", "Cost", "carbon dioxide of the electricity in g/kWh; default: unknown",
     DL_NUMBER(ASKED(carbon_g_per_kwh), .min = 1e-3, .max = 1e5)},
    {.name = NULL},
};

enum dl_code dl_amount_parse(const char *option, const char *text, struct dl_arena *arena,
                             double *amount, const char **currency, struct dl_err *err) {
    char *end;
    const double value = strtod(text, &end);
    bool word = true;
    while (*end == ' ') end++;
    for (const char *c = end; *c != 0; c++) word = word && isalpha((unsigned char)*c) != 0;
    if (!(value > 0) || !isfinite(value) || !word || strlen(end) > 8 ||
        !isdigit((unsigned char)text[strspn(text, ".")]))
        return dl_fail(err, DL_ERR_USAGE,
                       "--%s: expected an amount above 0 such as 24.5 or 24.5USD, got \"%.60s\"",
                       option, text);
    *amount = value;
    *currency = *end != 0 ? dl_arena_strdup(arena, end) : NULL;
    return DL_OK;
}

enum dl_code dl_rates_read(const struct dl_options *options, struct dl_arena *arena,
                           struct dl_rates *out, struct dl_err *err) {
    struct asked asked = {.price = NULL};
    DL_TRY(dl_options_bind(options, dl_rates_options, &asked, err));
    *out = (struct dl_rates){.node_w = asked.node_w, .carbon_g_per_kwh = asked.carbon_g_per_kwh};
    if (asked.price == NULL) return DL_OK;
    return dl_amount_parse("price", asked.price, arena, &out->price_per_node_hour, &out->currency,
                           err);
}

struct limits {
    double deadline_s;
    const char *budget;
};
#define LIMITS(member) struct limits, member

const struct dl_option dl_limits_options[] = {
    {"deadline", 0, "TIME", "Cost",
     "with --tokens or --epochs: the cheapest number of nodes that ends the run in TIME, e.g. 24h",
     DL_NUMBER(LIMITS(deadline_s), .unit = DL_UNIT_S, .min = 1e-6, .max = 1e11)},
    {"budget", 0, "AMOUNT", "Cost",
     "with --tokens or --epochs: the fastest number of nodes within AMOUNT, e.g. 500EUR",
     DL_TEXT(LIMITS(budget))},
    {.name = NULL},
};

enum dl_code dl_limits_read(const struct dl_options *options, const struct dl_inputs *inputs,
                            struct dl_arena *arena, struct dl_advice_limits *out,
                            struct dl_err *err) {
    struct limits limits = {.budget = NULL};
    const char *currency = NULL;
    *out = (struct dl_advice_limits){0, 0};
    DL_TRY(dl_options_bind(options, dl_limits_options, &limits, err));
    out->deadline_s = limits.deadline_s;
    const char *given = limits.budget != NULL   ? "budget"
                        : limits.deadline_s > 0 ? "deadline"
                                                : NULL;
    if (given == NULL) return DL_OK;
    if (!(inputs->length.tokens > 0) && !(inputs->length.epoch_count > 0))
        return dl_fail(err, DL_ERR_USAGE, "--%s: give the length of the run: --tokens or --epochs",
                       given);
    if (limits.budget == NULL) return DL_OK;
    DL_TRY(dl_amount_parse("budget", limits.budget, arena, &out->budget, &currency, err));
    if (!dl_known(dl_price_of(inputs->system, &inputs->rates)))
        return dl_fail(err, DL_ERR_USAGE, "--budget: no price of %s is known; give --price",
                       inputs->system->name);
    const char *prices = dl_currency_of(inputs->system, &inputs->rates);
    if (currency != NULL && prices != NULL && strcasecmp(currency, prices) != 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "--budget: in %s, but the price is in %s; give --price in %s", currency,
                       prices, currency);
    return DL_OK;
}
