# memory_course.gp - what fills the memory of a device over one iteration, and does it fit?
# Columns: 1 group (stage), 2 its label, 3 time in s, 4 weights, 5 gradients, 6 optimizer, 7 what else stays, 8 activations, 9 total,
# 10 capacity; 4 to 10 in bytes. Also set: unit (name) and unit_s (its size in s) of the time axis, bytes_unit and unit_bytes,
# capacity_bytes (0: unknown), master: 1 when the weights hold an FP32 copy. notes: the most of each stage. Written to standard output.

array pieces[5] = ['weights', 'gradients', 'optimizer', 'buffers and other fixed', 'activations']
array colors[5] = [0x08306B, 0x2F7FC1, 0xA6D3F2, 0xDDDDDD, 0xD98A00]
named(p) = pieces[p].(p == 1 && master ? ' (with FP32 copy)' : '')
up_to(piece) = (piece > 0 ? (sum [c=4:3+piece] column(c)) : 0)

stats data using ($3 / unit_s) nooutput
end = STATS_max
stats data using 9 nooutput
most = STATS_max
# a capacity far above all would flatten the curves: the title has it
full = capacity_bytes > 0 && capacity_bytes < 2.5 * most
row_bytes = 1.08 * (full && capacity_bytes > most ? capacity_bytes : most)
set xlabel sprintf('time (%s)', unit)
set xrange [0 : end]
set key horizontal maxrows (narrow ? 6 : 2) font ',12'

if (groups == 1) {
    set ylabel sprintf('memory per device (%s)', bytes_unit)
    scale = unit_bytes
    set yrange [0 : row_bytes / scale]
} else {
    # a row for each stage, with one scale
    scale = row_bytes
    unset ytics
    set yrange [0 : groups]
    set lmargin margin_for(9, 12)
    second = groups <= 16
    do for [g=1:groups] {
        if (second) { set label labels[g]."\n".notes[g] at graph 0, first groups - g + 0.5 right offset -1,0.5 font ',12' } \
        else { set label labels[g] at graph 0, first groups - g + 0.5 right offset -1,0 font ',10' }
        if (g > 1) { set arrow from graph 0, first groups - g + 1 to graph 1, first groups - g + 1 nohead linecolor rgb grey linewidth 0.5 }
    }
    set grid noytics
}
base(g) = (groups == 1 ? 0 : groups - g)
if (full) {
    do for [g=1:groups] {
        set arrow from graph 0, first base(g) + capacity_bytes / scale to graph 1, first base(g) + capacity_bytes / scale nohead front \
            linecolor rgb '#D55E00' dashtype (10,5) linewidth (groups == 1 ? 2 : 1)
    }
}
plot for [g=1:groups] for [p=1:5] data index (g - 1) using ($3 / unit_s):(base(g) + up_to(p - 1) / scale):(base(g) + up_to(p) / scale) \
         with filledcurves fillstyle solid 1 noborder linecolor rgb colors[p] title (g == 1 ? named(p) : ''), \
     for [g=1:groups] data index (g - 1) using ($3 / unit_s):(base(g) + $9 / scale) with lines linecolor rgb black dashtype 1 linewidth 0.6 notitle, \
     full ? NaN : 1/0 with lines linecolor rgb '#D55E00' dashtype (10,5) linewidth 2 title (full ? sprintf('capacity: %.4g %s', capacity_bytes / unit_bytes, bytes_unit) : '')
