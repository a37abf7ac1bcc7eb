# pipeline.gp - which micro-batch passes through which stage when, and where do stages wait?
# Columns: 1 group (stage), 2 its label, 3 start and 4 end in s, 5 kind (1 forward, 2 backward, 3 once an iteration, 4 gradients of
# weights, 5 micro-batches in equal periods), 6 its name,
# 7 micro-batch, 8 chunk of the model on the stage. Also set: unit (name) and unit_s (its size in s) of the axis, iteration_s, chunks (of a
# stage), named (1: few enough passes to number). notes: how long a stage is idle. Written to standard output.

array pieces[5] = ['forward', 'backward', 'communication, update, overhead', 'gradients of weights', 'equal periods, not drawn']
array colors[5] = [0x08519C, 0xF2B035, 0xAAAAAA, 0x8FBF6F, 0xDDDDDD] # steps of lightness that stay distinct in grey
array later[2] = [0x4A8BC9, 0xFCE6B8] # passes of every second chunk
is(k, odd) = (column(5) == k && (k > 2 ? !odd : (int(column(8)) % 2 == 0) == odd))
array there[5]
do for [k=1:5] { there[k] = 0 }
stats data using (there[int($5)] = 1) nooutput
from(k, odd) = (is(k, odd) ? column(3) / unit_s : NaN)
to(k, odd) = (is(k, odd) ? column(4) / unit_s : NaN)

set xlabel sprintf('time (%s)', unit)
set yrange [groups + 0.6 : 0.4]
set xrange [0 : iteration_s / unit_s]
unset ytics
longest = 8
second = !text && groups <= 16 # room for second lines
do for [g=1:groups] {
    longest = second && strlen(notes[g]) > longest ? strlen(notes[g]) : longest
    if (second) { set label labels[g]."\n".notes[g] at graph 0, first g right offset -1,0.5 font ',12' } \
    else { set label labels[g] at graph 0, first g right offset -1,0 }
}
set lmargin (text ? 10 : margin_for(longest, 12))
set rmargin 2
set grid noytics
set key horizontal maxrows (narrow ? 5 : 2) font ',13'

if (text) {
    plot for [k=1:5] data using (column(5) == k ? $3 / unit_s : NaN):1:(($4 - $3) / unit_s):(0) with vectors nohead linetype k \
             title (there[k] ? pieces[k] : '')
} else {
    thin = (named ? 0.4 : 0.1)
    # of an axis of about 84 % of the picture; a number takes 6 px a digit at this size, and 2 more to stand free
    pixels(a, b) = (b - a) / iteration_s * wide * (1 - (longest + 4) * 0.0095)
    digits(m, a, b) = (m == m && pixels(a, b) > 5.8 * strlen(sprintf('%d', m)) + 2 ? sprintf('%d', m) : '')
    of(k, odd) = pieces[k].(k > 2 || chunks == 1 ? '' : ', chunk '.(odd ? '2' : '1').(chunks > 2 ? (odd ? ', 4, ..' : ', 3, ..') : ''))
    plot for [k=1:2] for [odd=0:(chunks > 1 ? 1 : 0)] data using ((from(k, odd) + to(k, odd)) / 2):1:(from(k, odd)):(to(k, odd)):($1 - 0.4):($1 + 0.4) \
             with boxxyerror fillstyle solid 1 border linecolor rgb black linecolor rgb (odd ? later[k] : colors[k]) dashtype 1 linewidth thin \
             title of(k, odd), \
         for [k=3:5] data using ((from(k, 0) + to(k, 0)) / 2):1:(from(k, 0)):(to(k, 0)):($1 - 0.4):($1 + 0.4) with boxxyerror \
             fillstyle pattern (k == 4 ? 3 : 4) border linecolor rgb black linecolor rgb colors[k] dashtype 1 linewidth thin \
             title (there[k] ? pieces[k] : ''), \
         data using (named && ($5 < 3 || $5 == 4) ? ($3 + $4) / 2 / unit_s : NaN):1:(digits($7, $3, $4)):(is(1, 0) ? 0xFFFFFF : black) with labels \
             font ',9' textcolor rgb variable notitle
}
