# memory.gp - what fills the memory of a device, and does it fit?
# Columns: 1 group, 2 label of the bar, 3 its position, 4 weights, 5 gradients, 6 optimizer, 7 activations, 8 workspace, 9 buffers,
# 10 context and what the allocator loses, 11 total, 12 capacity; 4 to 12 in bytes.
# Also set: unit (name) and unit_bytes (its size) of the axis, capacity_bytes (0: unknown), xtitle, slanted (1: long labels).
# Written to standard output.

array pieces[7] = ['weights', 'gradients', 'optimizer', 'activations', 'workspace', 'communication buffers', 'context, fragmentation']
array colors[7] = [0x0072B2, 0x9AD0F0, 0x005A41, 0xE69F00, 0xF7DFA5, 0xD55E00, 0xFFFFFF]
array patterns[7] = [3, 3, 3, 3, 3, 4, 3] # hatched: distinct in grey too
up_to(piece) = sum [c=4:3+piece] column(c) / unit_bytes

stats data using 11 nooutput
most_of_all = STATS_max
array there[7] # parts that some bar has
do for [p=1:7] { stats data using (column(3 + p)) nooutput; there[p] = STATS_max > 0.002 * most_of_all }
named(p) = (there[p] ? pieces[p] : '')

set xlabel xtitle
set ylabel sprintf('memory of one device (%s)', unit)
set yrange [0:*]
set boxwidth 0.8
set key horizontal maxrows (narrow ? 9 : 4)
set grid noxtics
if (slanted) { set xtics rotate by 40 right }
set offsets 0.6, 0.6, graph 0.06, 0
capacity = capacity_bytes / unit_bytes
full = capacity > 0
stats data using 11 nooutput
most = STATS_max / unit_bytes

# Tallest first: each shorter bar covers the lower part of the one before.
if (text) {
    plot for [p=7:1:-1] data using 3:(up_to(p)):xtic(2) with boxes linetype p title named(p), \
         full ? capacity : NaN with lines linetype -1 title sprintf('capacity: %.1f %s', capacity, unit)
} else {
    if (full) { set arrow from graph 0, first capacity to graph 1, first capacity nohead front linecolor rgb '#D55E00' dashtype (10,5) linewidth 2 }
    if (full && capacity > most) { set yrange [0:1.08 * capacity] }
    plot for [p=7:1:-1] data using 3:(up_to(p)):xtic(2) with boxes fillstyle pattern patterns[p] border linecolor rgb black \
             linecolor rgb colors[p] dashtype 1 linewidth 0.6 title named(p), \
         NaN with lines linecolor rgb '#D55E00' dashtype (10,5) linewidth 2 title (full ? sprintf('capacity: %.1f %s', capacity, unit) : '')
}
