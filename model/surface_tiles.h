/* surface_tiles.h - what tiles and waves cost a matrix product. F-KERNEL-TILES.
 *
 * A library computes a product of sides m x n in tiles of tile_m x tile_n, one tile on one unit at a time; `units` tiles are
 * a wave. Whole tiles and whole waves are computed, needed or not:
 *
 *   tiles = ceil(m / tile_m) ceil(n / tile_n) count,  waves = ceil(tiles / units)
 *   excess = waves units tile_m tile_n / (m n count)  >= 1
 *
 * (NVIDIA, Matrix Multiplication Background, chapter 3; tile sizes: cublasLt's enumeration.) Not modelled: several tiles a
 * unit at once, split sums.
 */
#ifndef DL_MODEL_SURFACE_TILES_H
#define DL_MODEL_SURFACE_TILES_H

struct dl_tile { double m, n; };
extern const struct dl_tile dl_tile_large, dl_tile_usual, dl_tile_narrow; /* 128 x 128, x 64, x 32 */

/* Computed over needed points of the result, >= 1; 1 for an empty product. */
double dl_tile_excess(double m, double n, double count, double units, struct dl_tile tile);

/* Whole waves of 128 x 64 tiles over waves + 1, the smooth form that a fitted base has: near 1 for many waves, up to 2. */
double dl_tile_steps(double excess, double waves); /* dl_tile_excess of that tile, waves of it */

#endif
