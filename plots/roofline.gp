# roofline.gp - the layers of a workload on the roofline of their device.
# Columns: 1 group, 2 label, 3 layer, 4 flop per byte, 5 attained flop/s, 6 roof flop/s, 7 time (s), 8 share of all time, 9 limit.
# Also set: peak_flop_per_s, bandwidth_bytes_per_s, above (points above the roof). Written to standard output.

set xlabel 'arithmetic intensity (flop per byte of memory traffic)'
set ylabel 'rate (TFLOP/s)'
set logscale xy
set format x '%g'
set key horizontal maxrows (narrow ? 9 : 2)
set offsets 0, 0, graph 0.05, graph 0.05
roof(x) = (x * bandwidth_bytes_per_s < peak_flop_per_s ? x * bandwidth_bytes_per_s : peak_flop_per_s) / 1e12
set samples 400
stats data using 4 nooutput
set xrange [STATS_min / 2 : (STATS_max > 2 * peak_flop_per_s / bandwidth_bytes_per_s ? STATS_max : 2 * peak_flop_per_s / bandwidth_bytes_per_s) * 2]
set yrange [*:*]

if (text) {
    plot roof(x) with lines title 'roof', for [g=1:groups] data index g-1 using 4:($5/1e12) with points title labels[g]
} else {
    set key horizontal maxrows (narrow ? 9 : 2)
    names(s) = (s >= 0.04 ? strcol(3) : '') # of layers that take most of the time
    plot roof(x) with lines linecolor rgb black dashtype 1 linewidth 2 title 'roof: datasheet bandwidth and peak', \
         (above > 0 ? 2.25 * peak_flop_per_s / 1e12 : NaN) with lines linecolor rgb grey dashtype (8,6) linewidth 1.4 \
             title (above > 0 ? '2.25 x peak: Winograd F(2x2, 3x3) needs fewer flop than counted' : ''), \
         for [g=1:groups] data index g-1 using 4:($5/1e12):(0.6 + 14 * sqrt($8)) with points linetype g \
             pointtype (g == 1 ? 6 : 4) pointsize variable linewidth 1.2 title labels[g].' (area: share of the time)', \
         for [g=1:groups] data index g-1 using 4:($5/1e12):(names($8)) with labels left offset 1.2,-0.9 font ',12'
}
