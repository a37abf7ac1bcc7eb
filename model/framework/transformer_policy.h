/* transformer_policy.h - how a framework runs a stack of transformer layers that is split over
 * ranks: what moves, in which width, and what hides it. Facts read in the frameworks' sources, by
 * release; model/engine/transformer/transformer*.c reads them.
 */
#ifndef DL_MODEL_FRAMEWORK_TRANSFORMER_POLICY_H
#define DL_MODEL_FRAMEWORK_TRANSFORMER_POLICY_H

#include <stdbool.h>

/* What hides the collectives of tensor parallelism. F-TRANSFORMER-TENSOR-OVERLAP */
enum dl_tensor_overlap {
    DL_TENSOR_EXPOSED,
    /* backward, behind the GEMMs of the layer whose input or gradient moves */
    DL_TENSOR_BACKWARD,
    /* and piece by piece behind the GEMM that reads or writes what moves (user buffers) */
    DL_TENSOR_PIECES,
};

/* How context-parallel ranks exchange keys and values. F-TRANSFORMER-CONTEXT */
enum dl_context_exchange {
    DL_CONTEXT_RING,   /* around a ring, each step behind the attention of one share */
    DL_CONTEXT_GATHER, /* all of them before attention, exposed */
    /* from a share of the tokens to one of the heads, and results back (DeepSpeed-Ulysses) */
    DL_CONTEXT_ALL_TO_ALL,
};

/* How tokens reach experts on other ranks. F-TRANSFORMER-EXPERT */
enum dl_expert_exchange {
    DL_EXPERT_ALL_TO_ALL, /* each token to the ranks of its experts */
    DL_EXPERT_GATHER,     /* all tokens to all ranks; results are reduce-scattered */
    DL_EXPERT_ONCE,       /* each token once to every node of its experts, which forwards it */
};

/* Operations on rows between their exchange and the experts' GEMMs.
 * F-TRANSFORMER-EXPERT-ROWS */
enum dl_expert_rows {
    DL_ROWS_DIRECT,  /* none: kernels of the exchange or the GEMMs order them */
    DL_ROWS_SORTED,  /* sorted by expert, and back (Megatron-Core) */
    DL_ROWS_INDEXED, /* weighted, padded and gathered by eager operations (torchtitan) */
};

/* Which casts to 8 or 4 bits are separate kernels. F-TRANSFORMER-CASTS */
enum dl_casts {
    DL_CASTS_ALL,        /* of each input and gradient of a linear layer */
    DL_CASTS_AFTER_NORM, /* but inputs that a normalization writes: it writes 8 bits itself */
    DL_CASTS_FUSED,      /* none: a compiler lets the producer write 8 bits */
};

/* What selective recomputation repeats. F-TRANSFORMER-RECOMPUTE */
enum dl_selective {
    DL_SELECTIVE_ATTENTION,  /* attention between its projections (Megatron) */
    DL_SELECTIVE_OPERATIONS, /* all but attention and a share of the linear layers (PyTorch, JAX) */
    DL_SELECTIVE_BLOCKS,     /* a share of the layers of the stack, in full */
};

/* Library of the fused attention kernels. F-KERNEL-LOAD */
enum dl_attention_library {
    DL_ATTENTION_NATIVE, /* those written for the device: cuDNN, FlashAttention-3, Triton */
    DL_ATTENTION_TRITON, /* the first FlashAttention in Triton, before FlashAttention-2 */
    DL_ATTENTION_FLASH2, /* FlashAttention-2, with the instructions of Ampere on what came later */
    DL_ATTENTION_SDPA,   /* PyTorch's choice: cuDNN on Blackwell, FlashAttention-2 before it */
};

/* Mixtures of experts. */
struct dl_expert_policy {
    int exchange;           /* enum dl_expert_exchange */
    double imbalance_ratio; /* tokens of the fullest rank of experts / mean */
    int rows;               /* enum dl_expert_rows */
    bool loops;             /* each expert's GEMMs and casts are launched separately */
    bool adds_bias;         /* bias of the second GEMM by separate operations, in fp32 */
    /* host operations around a router and its dispatcher, in addition to their kernels, forward.
     * F-TRANSFORMER-EXPERT-CALLS */
    double routing_operation_count;
    /* architecture of GPUs on which an iteration of a mixture with a capacity is one CUDA graph;
     * NULL: none. F-TRANSFORMER-CAPTURE */
    const char *captured_on;
    bool grouped_gemms; /* experts by PyTorch's grouped kernels (F-KERNEL-GROUPED) */
};

struct dl_transformer_policy {
    /* width of a gradient element as summed and kept, with 16-bit or narrower arithmetic */
    double bf16_gradient_bytes;
    /* traffic for each parameter with which a micro-batch adds its gradients to those before it,
     * with bf16 or narrower arithmetic */
    double accumulate_bytes;
    /* width of a gathered parameter, with fp8 arithmetic; block-scaled formats gather 16 bits */
    double fp8_gather_bytes;
    /* gradient buckets: parameters, and the same for each data rank where that is more; NAN: the
     * framework's bucket_bytes, else one for each layer */
    double bucket_elements, bucket_elements_per_rank;
    bool overlaps_gather; /* parameters of stage 1 and 2 are gathered behind the next forward */
    bool p2p_overlap;     /* messages between interleaved stages move behind other micro-batches */
    /* interleaved stages sum gradients of ZeRO stage 2 after a round of micro-batches, not each */
    bool sums_each_round;
    bool no_reshard_with_pipeline; /* with pipeline stages weights of ZeRO stage 3 stay gathered */
    bool
        casts_gathered; /* weights are kept in fp32 alone and cast when they are gathered or used */
    bool copies_gathered;  /* gathered parameters are copied out of the collective's buffer */
    bool copies_gradients; /* gradients are copied into the collective's buffer */
    int tensor_overlap;    /* enum dl_tensor_overlap */
    int context_exchange;  /* enum dl_context_exchange */
    struct dl_expert_policy experts;
    bool captures_layers;     /* each pass of a layer is one CUDA graph. F-CUDA-GRAPHS */
    int selective;            /* enum dl_selective */
    double selective_frac;    /* share of the linear layers or blocks that is repeated */
    int attention_library;    /* enum dl_attention_library */
    bool recomputes_cudnn;    /* selective recomputation repeats attention where cuDNN runs it */
    bool uneven_parts;        /* virtual stages of a device may differ by a layer */
    bool stages_by_cost;      /* layers and head go to stages by their parameters */
    bool zero1_all_reduce;    /* stage 1 sums whole gradients, by one all-reduce after backward */
    bool gathers_pieces;      /* stage 1 gathers into lists: a copy for each tensor and data rank */
    bool whole_boundaries;    /* every tensor rank sends the whole of what a stage hands on */
    double host_update_bytes; /* F-OFFLOAD: that the host moves to update a parameter by Adam */
    double p2p_host_s;        /* of the hosts of both stages, for each message between them */
    /* operations of the host without kernels of a layer: states of random numbers saved and
     * restored around a layer that is recomputed, around the dropout of attention; to add the
     * gradient of one parameter tensor. F-HOST-COUNT */
    double recompute_operation_count, dropout_operation_count, gradient_operation_count;
    bool fp32_norm_input;  /* RMS norms take their input cast to fp32 */
    bool recomputes_norms; /* norms are computed again in backward where nothing else is */
    bool unfused_gate;   /* gated activations: two operations, and the first one's result is kept */
    bool half_gradients; /* 16-bit gradients stay in buckets next to the summed ones (DDP) */
    bool eager_operations;   /* RMS norm, rotary embedding, gated activations of many operations */
    int casts;               /* enum dl_casts; -1: it does not train in 8 bits and less */
    bool current_scaling;    /* scale factors of the tensor at hand: one more pass before a cast */
    bool casts_weights_once; /* in an iteration, not with every micro-batch */
};

#endif
