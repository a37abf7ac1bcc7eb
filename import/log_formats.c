/* log_formats.c - the formats of logs, one row each, with the texts that stand around the numbers.
 */
#include <stddef.h>

#include "import/log.h"

#define END                                                                                        \
    { DL_LOG_STEP, NULL, NULL, NULL, 0 }

static const struct dl_log_pattern megatron[] = {
    {DL_LOG_STEP, "elapsed time per iteration", "iteration ", NULL, 0},
    {DL_LOG_STEP_S, NULL, "elapsed time per iteration (ms):", NULL, 1e-3},
    {DL_LOG_BATCH, "elapsed time per iteration", "global batch size:", NULL, 0},
    {DL_LOG_DEVICES, NULL, "using world size:", NULL, 0},
    END};
static const struct dl_log_pattern titan[] = {
    {DL_LOG_STEP, "loss:", "step:", NULL, 0},
    {DL_LOG_DEVICE_TOKENS_PER_S, "loss:", " tps:", NULL, 0},
    {DL_LOG_DEVICE_TOKENS_PER_S, "loss:", " wps:", NULL, 0}, /* until 2024 */
    {DL_LOG_DEVICE_BATCH, "Trainer is initialized", "local batch size ", NULL, 0},
    {DL_LOG_BATCH, "Trainer is initialized", "global batch size ", NULL, 0},
    {DL_LOG_SEQ, "Trainer is initialized", "sequence length ", NULL, 0},
    END};
static const struct dl_log_pattern nemo[] = {
    {DL_LOG_STEP, NULL, "global_step: ", NULL, 0},
    {DL_LOG_STEP, NULL, "global_step=", NULL, 0},
    {DL_LOG_STEP_S, NULL, "train_step_timing in s: ", NULL, 0},
    {DL_LOG_STEP_S, NULL, "train_step_timing in s=", NULL, 0},
    {DL_LOG_STEP_S, NULL, "\"train_step_timing in s\": ", NULL, 0},
    {DL_LOG_BATCH, "train_step_timing", "global_batch_size: ", NULL, 0},
    END};
static const struct dl_log_pattern nanotron[] = {
    {DL_LOG_STEP, "elapsed_time_per_iteration_ms:", "iteration: ", NULL, 0},
    {DL_LOG_STEP_S, NULL, "elapsed_time_per_iteration_ms: ", NULL, 1e-3},
    {DL_LOG_TOKENS_PER_S, "elapsed_time_per_iteration_ms:", "tokens_per_sec: ", NULL, 0},
    {DL_LOG_DEVICE_TOKENS_PER_S, NULL, "tokens_per_sec_per_gpu: ", NULL, 0},
    {DL_LOG_BATCH, "elapsed_time_per_iteration_ms:", "global_batch_size: ", NULL, 0},
    {DL_LOG_CONSUMED_TOKENS, NULL, "consumed_tokens: ", NULL, 0},
    END};
static const struct dl_log_pattern maxtext[] = {
    {DL_LOG_STEP, NULL, "completed step: ", NULL, 0},
    {DL_LOG_STEP_S, "completed step:", "seconds: ", NULL, 0},
    {DL_LOG_DEVICE_TOKENS_PER_S, "completed step:", "Tokens/s/device: ", NULL, 0},
    END};
static const struct dl_log_pattern composer[] = {
    {DL_LOG_STEP, NULL, "[batch=", NULL, 0},
    {DL_LOG_SAMPLES_PER_S, NULL, "throughput/samples_per_sec:", NULL, 0},
    {DL_LOG_DEVICE_SAMPLES_PER_S, NULL, "throughput/device/samples_per_sec:", NULL, 0},
    {DL_LOG_TOKENS_PER_S, NULL, "throughput/tokens_per_sec:", NULL, 0},
    {DL_LOG_DEVICE_TOKENS_PER_S, NULL, "throughput/device/tokens_per_sec:", NULL, 0},
    END};
static const struct dl_log_pattern deepspeed[] = {
    {DL_LOG_STEP, "SamplesPerSec", "global_step=", NULL, 0},
    {DL_LOG_STEP, "iter time (s):", "steps: ", NULL, 0},
    {DL_LOG_STEP_S, NULL, "iter time (s): ", NULL, 0}, /* its pipeline engine */
    {DL_LOG_SAMPLES_PER_S, NULL, "CurrSamplesPerSec=", NULL, 0},
    {DL_LOG_SAMPLES_PER_S, "iter time (s):", "samples/sec: ", NULL, 0},
    {DL_LOG_DEVICES, NULL, "dist_world_size=", NULL, 0}, /* its launcher */
    END};
static const struct dl_log_pattern deepspeed_2020[] = {
    {DL_LOG_TOTAL, NULL, ", SamplesPerSec=", NULL, 0}, /* the mean since the second step */
    {DL_LOG_DEVICES, NULL, "dist_world_size=", NULL, 0},
    END};
static const struct dl_log_pattern tf_cnn[] = {
    {DL_LOG_SAMPLES_PER_S, "jitter", "images/sec:", NULL, 0},
    {DL_LOG_TOTAL, NULL, "total images/sec:", NULL, 0},
    {DL_LOG_MODEL, NULL, "Model:", NULL, 0},
    {DL_LOG_BATCH, " global", "Batch size:", NULL, 0},
    {DL_LOG_DEVICE_BATCH, NULL, NULL, " per device", 0},
    {DL_LOG_VARIABLES, NULL, "Variables:", NULL, 0},
    {DL_LOG_OPTIMIZER, NULL, "Optimizer:", NULL, 0},
    {DL_LOG_LAYOUT, NULL, "Data format:", NULL, 0},
    {DL_LOG_VERSION, NULL, "TensorFlow:", NULL, 0},
    END};
static const struct dl_log_pattern horovod[] = {
    {DL_LOG_STEP, "img/sec per", "Iter #", NULL, 0},
    {DL_LOG_DEVICE_SAMPLES_PER_S, "Iter #", ": ", NULL, 0},
    {DL_LOG_MODEL, NULL, "Model:", NULL, 0},
    {DL_LOG_DEVICE_BATCH, NULL, "Batch size:", NULL, 0},
    {DL_LOG_DEVICES, NULL, "Number of GPUs:", NULL, 0},
    {DL_LOG_DEVICES, NULL, "Number of CPUs:", NULL, 0},
    {DL_LOG_DEVICES, NULL, "Total img/sec on ", NULL, 0},
    END};
static const struct dl_log_pattern transformers[] = {
    /* before the line had steps/s too, it called them samples/s */
    {DL_LOG_TOTAL, "train_steps_per_second", "'train_samples_per_second':", NULL, 0},
    {DL_LOG_DEVICE_BATCH, NULL, "Instantaneous batch size per device =", NULL, 0},
    {DL_LOG_BATCH, NULL, "Total train batch size (w. parallel, distributed & accumulation) =", NULL,
     0},
    END};
static const struct dl_log_pattern lightning[] = {{DL_LOG_STEPS_PER_S, "Epoch ", NULL, "it/s", 0},
                                                  {DL_LOG_STEP_S, "Epoch ", NULL, "s/it", 0},
                                                  END};
static const struct dl_log_pattern own_lines[] = {END};

/* Formats whose lines other logs hold too come last. */
const struct dl_log_format dl_log_formats[] = {
    {"megatron",
     "megatron-core",
     {"elapsed time per iteration (ms):"},
     megatron,
     dl_log_megatron_line},
    {"nanotron", "nanotron", {"elapsed_time_per_iteration_ms:"}, nanotron, NULL},
    {"torchtitan", "pytorch-fsdp2", {"step:", "loss:", "memory:"}, titan, dl_log_titan_line},
    {"nemo", "megatron-core", {"train_step_timing in s"}, nemo, NULL},
    {"mlperf", NULL, {":::MLLOG"}, own_lines, dl_log_mlperf_line},
    {"maxtext", "jax-maxtext", {"completed step:", "seconds:"}, maxtext, NULL},
    {"composer", "pytorch-fsdp", {"throughput/samples_per_sec:"}, composer, NULL},
    {"deepspeed", NULL, {"CurrSamplesPerSec="}, deepspeed, dl_log_deepspeed_line},
    {"deepspeed", NULL, {"iter time (s):", "samples/sec:"}, deepspeed, dl_log_deepspeed_line},
    {"deepspeed", NULL, {", SamplesPerSec="}, deepspeed_2020, dl_log_deepspeed_line},
    {"tf_cnn_benchmarks", NULL, {"images/sec:"}, tf_cnn, NULL},
    {"horovod", NULL, {"img/sec per", "Iter #"}, horovod, NULL},
    {"transformers", NULL, {"train_samples_per_second"}, transformers, dl_log_deepspeed_line},
    {"keras", NULL, {"/step"}, own_lines, dl_log_keras_line},
    {"keras", NULL, {"/sample"}, own_lines, dl_log_keras_line},
    {"lightning", NULL, {"Epoch ", "it"}, lightning, NULL},
    {"power", NULL, {"power.draw"}, own_lines, dl_log_power_line},
    {"power", NULL, {"# gpu", "pwr"}, own_lines, dl_log_power_line},
    {"power", NULL, {"#Entity", "POWER"}, own_lines, dl_log_power_line},
    {"power", NULL, {"#Entity", "PWR"}, own_lines, dl_log_power_line},
    {NULL, NULL, {NULL}, NULL, NULL},
};
