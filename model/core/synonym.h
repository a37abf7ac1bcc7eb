/* synonym.h - words that people and frameworks use for values and names that have another word
 * here. */
#ifndef DL_MODEL_CORE_SYNONYM_H
#define DL_MODEL_CORE_SYNONYM_H

#include <stdbool.h>

/* Our word for a value: "bf16" for "bfloat16"; the word itself where there is no other. */
const char *dl_value_synonym(const char *word);
/* Our name of a framework or workload: "pytorch-ddp" for "ddp"; NULL: none. */
const char *dl_name_synonym(const char *name);
/* Whether a framework's name says that states are sharded inside a node and replicated between
 * nodes: "hsdp". */
bool dl_name_shards_in_nodes(const char *framework);
/* What stands for a name that is more than one name here: "-s 8xh100_sxm" for a cloud's instance;
 * NULL: none. */
const char *dl_name_advice(const char *name);
/* Whether two names have the same letters and digits, in any case; the cloud that an instance's
 * name begins with may be left out. */
bool dl_same_name(const char *name, const char *ours);

#endif
