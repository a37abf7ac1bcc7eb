# rows.awk - a table of runs of any length: awk -v count=ROWS -v cases=N -f rows.awk
# N jobs that differ in nodes, batch and source, again and again; each row has a name and a measured value of its own.
BEGIN {
    print "id,source,system,framework,workload,nodes,devices_per_node,batch_per_device,metric,value,unit,notes"
    for (i = 0; i < count; i++) {
        job = i % cases
        printf "r%d,s%d,iris-v100,pytorch-ddp,resnet50,%d,4,%d,throughput,%.2f,samples/s,\"run %d, of job %d\"\n", i,
               job % 97, 2 ^ (job % 6), 1 + int(job / 6) % 512, 500 + (i * 7919) % 100003 / 20, i, job
    }
}
