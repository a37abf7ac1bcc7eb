# pipeline.gp - which micro-batch passes through which stage when, and where do stages wait?
# Columns: 1 group (stage), 2 its label, 3 start and 4 end in s, 5 kind (1 forward, 2 backward, 3 once an iteration), 6 its name,
# 7 micro-batch, 8 part of the stage. Also set: unit (name) and unit_s (its size in s) of the axis, iteration_s, parts (of a stage),
# named (1: few enough passes to number). Written to standard output.

array pieces[3] = ['forward', 'backward', 'communication, update, overhead']
array colors[3] = [0x0072B2, 0xE69F00, 0xDDDDDD]
array later[3] = [0x4B9CD3, 0xF7DFA5, 0xDDDDDD] # passes of every second part
is(k, odd) = (column(5) == k && (k == 3 ? !odd : (int(column(8)) % 2 == 0) == odd))
from(k, odd) = (is(k, odd) ? column(3) / unit_s : NaN)
to(k, odd) = (is(k, odd) ? column(4) / unit_s : NaN)

set xlabel sprintf('time (%s)', unit)
set yrange [groups + 0.6 : 0.4]
set xrange [0 : iteration_s / unit_s]
unset ytics
set lmargin 10
do for [g=1:groups] { set label labels[g] at graph 0, first g right offset -1,0 }
set grid noytics
set key horizontal maxrows (narrow ? 4 : 1)

if (text) {
    plot for [k=1:3] data using (column(5) == k ? $3 / unit_s : NaN):1:(($4 - $3) / unit_s):(0) with vectors nohead linetype k title pieces[k]
} else {
    boxes = 'boxxyerror fillstyle solid 1 border linecolor rgb black'
    plot for [k=1:3] data using ((from(k, 0) + to(k, 0)) / 2):1:(from(k, 0)):(to(k, 0)):($1 - 0.4):($1 + 0.4) with boxxyerror \
             fillstyle solid 1 border linecolor rgb black linecolor rgb colors[k] dashtype 1 linewidth (named ? 0.4 : 0.1) \
             title (k == 3 || parts == 1 ? pieces[k] : pieces[k].', part 1'.(parts > 2 ? ', 3, ..' : '')), \
         for [k=1:(parts > 1 ? 2 : 0)] data using ((from(k, 1) + to(k, 1)) / 2):1:(from(k, 1)):(to(k, 1)):($1 - 0.4):($1 + 0.4) with boxxyerror \
             fillstyle solid 1 border linecolor rgb black linecolor rgb later[k] dashtype 1 linewidth (named ? 0.4 : 0.1) \
             title pieces[k].', part 2'.(parts > 2 ? ', 4, ..' : ''), \
         data using (named && $5 < 3 ? ($3 + $4) / 2 / unit_s : NaN):1:(sprintf('%d', $7)):(is(1, 0) ? 0xFFFFFF : black) with labels \
             font ',10' textcolor rgb variable notitle
}
