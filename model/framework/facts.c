/* facts.c - see the header. */
#include "model/framework/facts.h"

struct dl_kernel_facts dl_framework_facts(const struct dl_framework *framework,
                                          enum dl_precision precision,
                                          enum dl_attention_kernel attention) {
    struct dl_kernel_facts facts = dl_kernel_facts_plain(precision);
    (void)framework;
    facts.attention = attention;
    return facts;
}
