#!/bin/bash
# validate.sh - more frameworks than `make check` installs: TensorFlow, Keras, MXNet and Horovod from PyPI into build/frameworks, each run on the real Slurm
# test bed with 1, 2 and 4 tasks. What cannot be installed or does not run is said with its error. Ends with the table of runs. Needs root and network.
set -u
cd "$(dirname "$0")/../.." || exit 2
export PATH=$PATH:/usr/sbin:/sbin
: "${DLMODEL:=$PWD/build/dlmodel}"
work=$PWD/build/validate python=$PWD/build/frameworks/bin/python
mkdir -p "$work"
[ -x "$python" ] || python3 -m venv --system-site-packages build/frameworks || exit 5
for package in 'tensorflow-cpu==2.12.0 numpy==1.23.5' 'mxnet==1.9.1 numpy==1.23.5' 'horovod==0.28.1'; do
    # shellcheck disable=SC2086
    HOROVOD_WITH_TENSORFLOW=1 HOROVOD_WITH_MPI=1 HOROVOD_WITHOUT_GLOO=1 HOROVOD_WITHOUT_PYTORCH=1 HOROVOD_WITHOUT_MXNET=1 \
        timeout 3600 "$python" -m pip install -q $package > "$work/pip.log" 2>&1 || echo "cannot install $package: $(grep -iE 'error' "$work/pip.log" | tail -n 1)"
done
sed "s|\"devices_per_node\": 1|\"devices_per_node\": 4|; s|\"/usr/bin/python3\"|\"$python\"|" tests/slurm/bed.json > "$work/site.json"
rm -rf "$work/bed" "$work/runs"
trap 'bash tests/slurm/testbed.sh stop "$work/bed"' EXIT
bash tests/slurm/testbed.sh start "$work/bed" 4 || exit 6
export SLURM_CONF=$work/bed/slurm.conf DLMODEL_SITE=$work/site.json
submit() { "$DLMODEL" -q slurm submit --dir "$work/runs" --time 300s --steps 20 --warmup 5 "$@" > /dev/null; }
for workload in '--workload=lenet --batch-per-device=64' '--workload=squeezenet1_1 --input=64x64 --batch-per-device=8' '--workload=resnet18 --input=64x64 --batch-per-device=8'; do
    # shellcheck disable=SC2086
    submit --framework tensorflow-multiworker,tensorflow-ps,mxnet-dist-sync,horovod-tensorflow,horovod-keras --nodes 1,2,4 --devices-per-node 1 $workload
    for d in 1 2 4; do
        # shellcheck disable=SC2086
        submit --framework tensorflow-mirrored,keras-mirrored,mxnet-device --devices-per-node $d $workload
    done
done
while [ -n "$(squeue -h)" ]; do sleep 2; done
"$DLMODEL" slurm status --dir "$work/runs"
"$DLMODEL" slurm collect --dir "$work/runs" -o "$work/runs.csv"
