# timeline.gp - what runs when in one iteration, and what overlaps?
# Columns: 1 group (lane), 2 its label, 3 start and 4 end in s, 5 kind from 1, 6 its name, 7 name of the piece.
# Also set: unit (name) and unit_s (its size in s) of the axis, iteration_s, longest (what the longest message is, "": none) and
# longest_s (its middle). Lane 3 is a sum of lengths, not a course in time: it stands apart. Written to standard output.

array pieces[8] = ['forward', 'backward', 'update', 'communication', 'exposed communication', 'exposed input', 'overhead', 'other micro-batches']
array colors[8] = [0x0072B2, 0x9AD0F0, 0x005A41, 0xE69F00, 0xE69F00, 0xD55E00, 0xFFFFFF, 0xC8DCE8]
array patterns[8] = [3, 3, 3, 3, 4, 5, 3, 3]
from(k) = (column(5) == k ? column(3) / unit_s : NaN)
to(k) = (column(5) == k ? column(4) / unit_s : NaN)
lane(g) = (g == 3 ? 3.45 : g)

array there[8]
do for [k=1:8] { there[k] = 0 }
stats data using (there[int($5)] = 1) nooutput
named(k) = (there[k] ? pieces[k] : '')
stats data using ($4 / unit_s) nooutput
longest_of_all = STATS_max > iteration_s / unit_s ? STATS_max : iteration_s / unit_s

set xlabel sprintf('time (%s)', unit)
set yrange [4.05 : 0.4]
set xrange [0 : 1.03 * longest_of_all]
unset ytics
set lmargin (text ? 12 : margin_for(18, 13))
do for [g=1:groups] {
    if (text) { set label labels[g] at graph 0, first lane(g) right offset -1,0 } \
    else { set label labels[g]."\n".notes[g] at graph 0, first lane(g) right offset -1,0.5 font ',13' }
}
set grid noytics
set key horizontal maxrows (narrow ? 8 : 4) font ',12'
set arrow from first iteration_s / unit_s, graph 0 to first iteration_s / unit_s, graph 1 nohead front linecolor rgb black dashtype (8,6) linewidth 1.2

if (text) {
    plot for [k=1:8] data using (from(k)):(lane($1)):(to(k) - from(k)):(0) with vectors nohead linetype k title named(k)
} else {
    # boxes narrower than their rims stay without
    rimmed = 0.004 * longest_of_all
    broad(k) = (to(k) - from(k) >= rimmed ? from(k) : NaN)
    slim(k) = (to(k) - from(k) < rimmed ? from(k) : NaN)
    set arrow from graph 0, first 2.72 to graph 1, first 2.72 nohead linecolor rgb grey dashtype (2,4) linewidth 1
    # how long the device waits, over the stretch; what blocks the network, in its box
    waits(a, b) = (column(1) == 1 && column(5) == 5 && b - a > 0.06 * longest_of_all ? sprintf('waits %.3g %s', b - a, unit) : '')
    if (longest ne '') { set label 'longest: '.longest at longest_s / unit_s, 2.45 center font ',12' front }
    plot for [k=1:8] data using ((slim(k) + to(k)) / 2):(lane($1)):(slim(k)):(to(k)):(lane($1) - 0.33):(lane($1) + 0.33) with boxxyerror \
             fillstyle solid 1 noborder linecolor rgb colors[k], \
         for [k=1:8] data using ((broad(k) + to(k)) / 2):(lane($1)):(broad(k)):(to(k)):(lane($1) - 0.33):(lane($1) + 0.33) with boxxyerror \
             fillstyle pattern patterns[k] border linecolor rgb black linecolor rgb colors[k] dashtype 1 linewidth 0.3 title named(k), \
         data using (($3 + $4) / 2 / unit_s):(0.55):(waits($3 / unit_s, $4 / unit_s)) with labels offset 0,0.3 font ',12' notitle, \
         NaN with lines linecolor rgb black dashtype (8,6) linewidth 1.2 title 'end of the iteration'
}
