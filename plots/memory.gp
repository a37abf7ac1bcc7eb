# memory.gp - what fills the memory of a device, and does it fit?
# Columns: 1 group, 2 label of the bar, 3 its position, 4 weights, 5 gradients, 6 optimizer, 7 activations, 8 workspace, 9 buffers,
# 10 context and what the allocator loses, 11 total, 12 capacity; 4 to 12 in bytes.
# Also set: unit (name) and unit_bytes (its size) of the axis, capacity_bytes (0: unknown), xtitle, slanted (1: long labels).
# master: 1 when the weights hold an FP32 copy besides those of lower precision. notes: names of the bars.
# Bars lie, so that their names need no slant and thin parts get room. Written to standard output.

array pieces[7] = ['weights', 'gradients', 'optimizer', 'activations', 'workspace', 'communication buffers', 'context, fragmentation']
array colors[7] = [0x08306B, 0x2F7FC1, 0xA6D3F2, 0xD98A00, 0xF9E4B0, 0xD55E00, 0xFFFFFF] # steps of lightness, for prints in grey
array patterns[7] = [3, 3, 3, 3, 3, 4, 3]
up_to(piece) = (piece > 0 ? (sum [c=4:3+piece] column(c) / unit_bytes) : 0)

stats data using 11 nooutput
most_of_all = STATS_max
array there[7] # parts that some bar has
do for [p=1:7] { stats data using (column(3 + p)) nooutput; there[p] = STATS_max > 0.002 * most_of_all }
named(p) = (there[p] ? pieces[p].(p == 1 && master ? ' (with FP32 copy)' : '') : '')
capacity = capacity_bytes / unit_bytes
full = capacity > 0
most = most_of_all / unit_bytes
what = sprintf('memory per device (%s)', unit)

if (text) {
    # tallest first: each shorter bar covers the lower part of the one before
    set xlabel xtitle
    set ylabel what
    set yrange [0:*]
    set boxwidth 0.8
    set key horizontal maxrows 4
    set grid noxtics
    if (slanted) { set xtics rotate by 40 right }
    set offsets 0.6, 0.6, graph 0.06, 0
    plot for [p=7:1:-1] data using 3:(up_to(p)):xtic(2) with boxes linetype p title named(p), \
         full ? capacity : NaN with lines linetype -1 title sprintf('capacity: %.1f %s', capacity, unit)
} else {
    set xlabel what
    stats data using 3 nooutput
    bars = STATS_records
    end = full && capacity > most ? capacity : most
    last = STATS_max
    first = STATS_min
    unset ytics
    set grid noytics
    set border 3
    if (narrow) { set key horizontal maxrows 4 font ',12' } else { set key outside right center vertical maxrows 9 samplen 2 spacing 1.3 font ',12' }
    longest = strlen(xtitle)
    letters = bars > 24 ? ',10' : ',13'
    array names[bars]
    array places[bars]
    row = 0
    name(y) = (row = row + 1, names[row] = notes[row], places[row] = y, longest = strlen(notes[row]) > longest ? strlen(notes[row]) : longest, 0)
    stats data using (name($3)) nooutput
    do for [b=1:bars] { set label b names[b] at graph 0, first places[b] right offset -1,0 font letters }
    set label 100 xtitle at graph 0, graph 1 right offset -1,0.6 font ',13' textcolor rgb 0x555555
    set lmargin margin_for(longest, 13)
    set xrange [0 : end * 1.08]
    set yrange [last + 0.6 : first - 0.6]
    if (full) {
        set arrow from capacity, graph 0 to capacity, graph 1 nohead front linecolor rgb '#D55E00' dashtype (10,5) linewidth 2
        set label 101 sprintf('capacity %.4g %s', capacity, unit) at capacity, graph 1 right offset 0,0.6 font ',13' textcolor rgb '#D55E00'
    }
    # no rims inside a bar: they would cover thin parts; one around it
    plot for [p=1:7] data using ((up_to(p - 1) + up_to(p)) / 2):3:(up_to(p - 1)):(up_to(p)):($3 - 0.38):($3 + 0.38) with boxxyerror \
             fillstyle pattern patterns[p] noborder linecolor rgb colors[p], \
         data using (up_to(7) / 2):3:(0):(up_to(7)):($3 - 0.38):($3 + 0.38) with boxxyerror fillstyle empty border linecolor rgb black \
             linecolor rgb black dashtype 1 linewidth 0.5, \
         data using (up_to(7)):3:(sprintf('%.3g', up_to(7))) with labels left offset 0.6,0 font letters, \
         for [p=1:7] keyentry with boxes fillstyle pattern patterns[p] border linecolor rgb black linecolor rgb colors[p] dashtype 1 linewidth 0.5 title named(p)
}
