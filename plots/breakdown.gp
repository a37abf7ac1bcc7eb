# breakdown.gp - where does the time of an iteration go?
# Columns: 1 group, 2 label of the bar, 3 its position, 4 forward, 5 backward, 6 update, 7 exposed communication, 8 exposed input,
# 9 overhead, 10 iteration, 11 and 12 ends of its 80 % interval; 4 to 12 in s; 14 nodes.
# Also set: unit (name) and unit_s (its size in s) of the axis, xtitle, slanted (1: long labels). Written to standard output.

array pieces[6] = ['forward', 'backward', 'update', 'exposed communication', 'exposed input', 'overhead']
array colors[6] = [0x0072B2, 0x9AD0F0, 0x005A41, 0xE69F00, 0xD55E00, 0xFFFFFF]
array patterns[6] = [3, 3, 3, 3, 4, 3]
up_to(piece) = sum [c=4:3+piece] column(c) / unit_s

stats data using 10 nooutput
most_of_all = STATS_max
rows = STATS_records
array there[6] # parts that some bar has
do for [p=1:6] { stats data using (column(3 + p)) nooutput; there[p] = STATS_max > 0.002 * most_of_all }
named(p) = (there[p] ? pieces[p] : '')

set xlabel xtitle
set ylabel sprintf('time per iteration (%s)', unit)
set yrange [0:*]
set boxwidth 0.8
set key horizontal maxrows (narrow ? 9 : 3)
set grid noxtics
if (slanted) { set xtics rotate by 40 right }
set offsets 0.3, 0.3, graph 0.04, 0
eval clusters

# Tallest first: each shorter bar covers the lower part of the one before.
if (text) {
    plot for [p=6:1:-1] data using 3:(up_to(p)):xtic(2) with boxes linetype p title named(p)
} else {
    if (!narrow) { set key outside right center vertical maxrows 9 samplen 2.5 spacing 1.4 }
    # the length of the exposed communication, where its part is tall enough for a number
    exposed(k) = (column(7) > 0.06 * most_of_all && rows <= 12 ? sprintf(column(7) / unit_s < 100 ? '%.3g' : '%.0f', column(7) / unit_s) : '')
    plot for [p=6:1:-1] data using 3:(up_to(p)):xtic(clustered ? 14 : 2) with boxes fillstyle pattern patterns[p] border linecolor rgb black \
             linecolor rgb colors[p] dashtype 1 linewidth 0.6 title named(p), \
         data using 3:(up_to(3) + $7 / unit_s / 2):(exposed(0)) with labels font ',12' notitle, \
         data using ($3 + 0.46):($11 / unit_s):(0):(($12 - $11) / unit_s) with vectors heads size graph 0.006,90 linecolor rgb black \
             dashtype 1 linewidth 1.2 title '80 % interval'
}
