/* kernel_model_tiles.h - F-KERNEL-TILES: tile and wave quantization of a GEMM. Inline, because a
 * convolution tries three tile sizes.
 *
 * A library computes a result of m x n in tiles of tile_m x tile_n, one tile per unit at a time;
 * `units` tiles are a wave. It always computes whole tiles and whole waves:
 *
 *   tiles = ceil(m / tile_m) ceil(n / tile_n) count,  waves = ceil(tiles / units)
 *   excess = waves units tile_m tile_n / (m n count)  >= 1
 *
 * (NVIDIA, Matrix Multiplication Background, chapter 3; tile sizes: cublasLt's enumeration.) Not
 * modelled: several tiles per unit at once, split-K.
 */
#ifndef DL_MODEL_MACHINE_KERNEL_MODEL_TILES_H
#define DL_MODEL_MACHINE_KERNEL_MODEL_TILES_H

#include "model/machine/kernel_model_math.h"

struct dl_tile {
    double m, n;
};
static const struct dl_tile dl_tile_large = {128, 128}, dl_tile_usual = {128, 64},
                            dl_tile_narrow = {128, 32};

/* Computed / needed points of the result, >= 1; 1 for an empty GEMM. unit_share: 1 / units. Factors
 * that are known early are multiplied first: kernel times wait for this. */
static inline double dl_tile_excess(double m, double n, double count, double units,
                                    double unit_share, struct dl_tile tile) {
    /* Shares of a wave are at least 1 / units apart, so this factor brings a quotient that rounding
     * left above a whole number below it, and no other. */
    static const double BELOW = 1.0 - 1.0 / (1LL << 40);
    const double points = m * n * count,
                 waves = dl_whole_up(dl_whole_up(m / tile.m) * dl_whole_up(n / tile.n) *
                                     (count * unit_share * BELOW));
    return points > 0 && units > 0 ? waves * (units * (tile.m * tile.n) / points) : 1;
}

/* Whole waves of 128 x 64 tiles / (waves + 1), the smooth form of a fitted base: near 1 for many
 * waves, at most 2. excess, waves: of that tile. */
static inline double dl_tile_steps(double excess, double waves) {
    return waves > 0 ? excess * waves / (waves + 1) : 1;
}

#endif
