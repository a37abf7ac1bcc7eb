# timeline.gp - what runs when in one iteration, and what overlaps?
# Columns: 1 group (lane), 2 its label, 3 start and 4 end in s, 5 kind from 1, 6 its name, 7 name of the piece.
# Also set: unit (name) and unit_s (its size in s) of the axis, iteration_s. Written to standard output.

array pieces[6] = ['forward', 'backward', 'update', 'communication', 'exposed input', 'overhead']
array colors[6] = [0x0072B2, 0x9AD0F0, 0x005A41, 0xE69F00, 0xD55E00, 0xFFFFFF]
from(k) = (column(5) == k ? column(3) / unit_s : NaN)
to(k) = (column(5) == k ? column(4) / unit_s : NaN)

set xlabel sprintf('time (%s)', unit)
set yrange [groups + 0.7 : 0.3]
set xrange [0:*]
unset ytics
set lmargin (text ? 12 : 12)
do for [g=1:groups] { set label labels[g] at graph 0, first g right offset -1,0 }
set grid noytics
set key horizontal maxrows (narrow ? 6 : 2)
set offsets 0, graph 0.03, 0, 0
set arrow from first iteration_s / unit_s, graph 0 to first iteration_s / unit_s, graph 1 nohead linecolor rgb black dashtype (8,6) linewidth 1.2

if (text) {
    plot for [k=1:6] data using (from(k)):1:(to(k) - from(k)):(0) with vectors nohead linetype k title pieces[k]
} else {
    plot for [k=1:6] data using ((from(k) + to(k)) / 2):1:(from(k)):(to(k)):($1 - 0.33):($1 + 0.33) with boxxyerror \
             fillstyle solid 1 border linecolor rgb black linecolor rgb colors[k] dashtype 1 linewidth 0.3 title pieces[k], \
         NaN with lines linecolor rgb black dashtype (8,6) linewidth 1.2 title 'end of the iteration'
}
