/* synonym.h - words that people and frameworks use for values and names that have another word
 * here. */
#ifndef DL_MODEL_CORE_SYNONYM_H
#define DL_MODEL_CORE_SYNONYM_H

/* Our word for a value: "bf16" for "bfloat16"; the word itself where there is no other. */
const char *dl_value_synonym(const char *word);
/* Our name of a framework: "pytorch-ddp" for "ddp"; NULL: none. */
const char *dl_framework_synonym(const char *name);

#endif
