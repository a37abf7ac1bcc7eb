# roofline.gp - the layers of a workload on the roofline of their device: which are limited by memory, which by compute?
# Columns: 1 group (1 forward, 2 backward), 2 label, 3 layer, 4 flop per byte, 5 attained flop/s, 6 roof flop/s, 7 time (s), 8 share of
# all time, 9 limit, 10 kind of layer, 11 its rank by time (7: all others), 12 share of all layers in the same place (NaN: in another marker).
# Also set: peak_flop_per_s, bandwidth_bytes_per_s, above (points above the roof). notes: kinds by rank with their shares of the time.
# Written to standard output.

set xlabel 'arithmetic intensity (flop per byte of memory traffic)'
set ylabel 'predicted rate (TFLOP/s)'
set logscale xy
set format x '%g'
set offsets 0, 0, graph 0.05, graph 0.12
roof(x) = (x * bandwidth_bytes_per_s < peak_flop_per_s ? x * bandwidth_bytes_per_s : peak_flop_per_s) / 1e12
ridge = peak_flop_per_s / bandwidth_bytes_per_s
set samples 400
stats data using 4 nooutput
set xrange [STATS_min / 2 : (STATS_max > 2 * ridge ? STATS_max : 2 * ridge) * 2]
set yrange [*:*]
middle = sqrt(STATS_min * (STATS_max > 2 * ridge ? STATS_max : 2 * ridge))

if (text) {
    set key horizontal maxrows 2
    plot roof(x) with lines title 'roof', for [g=1:groups] data index g-1 using 4:($5/1e12) with points title labels[g]
} else {
    # a shape and colour for each kind; open: forward, filled: backward
    array open_shape[7] = [6, 4, 8, 12, 10, 14, 1]
    array full_shape[7] = [7, 5, 9, 13, 11, 15, 2]
    array colors[7] = [0x0072B2, 0xD55E00, 0x009E73, 0xCC79A7, 0xE69F00, 0x56B4E9, 0x6E6E6E]
    if (narrow) { set key horizontal maxrows 6 samplen 1 font ',11' } else { set key outside right center vertical maxrows 20 samplen 1.5 spacing 1.25 font ',13' }
    size(share) = (share > 0.0004 ? 11 * sqrt(share) : 0.22)
    of(k, c) = (column(11) == k ? column(c) : NaN)
    # names of layers that take much of the time, and of the few far below the roof
    low = 0
    stats data using ($5 < 0.25 * $6 ? (low = low + 1, 0) : 0) nooutput
    named(share, rate, most) = (share >= 0.04 || (low <= 4 && rate < 0.25 * most) ? strcol(3).', '.strcol(2) : '')
    on_left(x) = x < middle
    set tmargin 3 + 1.02 * count_lines(heading)
    set arrow from ridge, graph 0 to ridge, graph 1.05 nohead back linecolor rgb grey dashtype (2,4) linewidth 1.2
    set label 'limited by memory' at ridge, graph 1.03 right offset -0.7,0 font ',13' textcolor rgb 0x555555
    set label (narrow ? 'compute' : 'by compute') at ridge, graph 1.03 left offset 0.7,0 font ',13' textcolor rgb 0x555555
    last = (exists('notes') && |notes| > 6 ? 7 : |notes|)
    plot roof(x) with lines linecolor rgb black dashtype 1 linewidth 2 title 'roof (datasheet)', \
         (above > 0 ? 2.25 * peak_flop_per_s / 1e12 : NaN) with lines linecolor rgb grey dashtype (8,6) linewidth 1.4 \
             title (above > 0 ? '2.25 x peak (Winograd)' : ''), \
         for [k=1:7] data index 1 using (of(k, 4)):($5/1e12):(size($12)) with points linecolor rgb (0xB0000000 + colors[k]) \
             pointtype full_shape[k] pointsize variable linewidth 1, \
         for [k=1:7] data index 0 using (of(k, 4)):($5/1e12):(size($12)) with points linecolor rgb colors[k] \
             pointtype open_shape[k] pointsize variable linewidth 1.3, \
         data using 4:($5/1e12) with points linecolor rgb black pointtype 7 pointsize 0.15, \
         data using (on_left($4) ? $4 : NaN):($5/1e12):(named($8, $5, $6)) with labels left offset 0.8,-0.7 font ',12', \
         data using (on_left($4) ? NaN : $4):($5/1e12):(named($8, $5, $6)) with labels right offset -0.8,-0.7 font ',12', \
         for [k=1:last] NaN with points linecolor rgb colors[k] pointtype open_shape[k] pointsize 1.3 linewidth 1.3 title notes[k], \
         NaN with points linecolor rgb black pointtype 6 pointsize 1.3 title 'open: forward', \
         NaN with points linecolor rgb 0xB0000000 pointtype 7 pointsize 1.3 title 'filled: backward', \
         NaN with points linecolor rgb black pointtype 6 pointsize size(0.01) title 'area: 1 % of the time', \
         NaN with points linecolor rgb black pointtype 6 pointsize size(0.05) title 'area: 5 % of the time'
}
