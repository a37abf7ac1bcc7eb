#!/bin/sh
# Models of Keras without TensorFlow: what to_json() wrote and archives (.keras). Parameters are those that Keras counted when the
# files were made (trainable_variables); multiply-adds are counted here from the shapes in the file.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
models=tests/fixtures/keras

cat > "$SCRATCH/count.py" << 'PY'
import json, math, sys, zipfile
path = sys.argv[1]
model = json.loads(zipfile.ZipFile(path).read("config.json") if path.endswith(".keras") else open(path).read())
shapes, macs = {}, 0
def tensors(node):
    if isinstance(node, dict) and "keras_history" in node.get("config", {}):
        yield {"keras_history": node["config"]["keras_history"], "shape": node["config"]["shape"], "config": node["config"]}
        return
    for value in (node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()):
        yield from tensors(value)
def made(layers):  # the shape that each layer gives, as its readers have it
    return {t["keras_history"][0]: t["shape"] for l in layers for t in tensors(l["inbound_nodes"])} if layers and "inbound_nodes" in layers[0] else {}
def count(config):
    layers, total = config["layers"], 0
    out = made(layers)
    for i, l in enumerate(layers):
        c, kind = l["config"], l["class_name"]
        if kind in ("Sequential", "Functional"):
            total += count(c)
            continue
        built = l.get("build_config", {}).get("input_shape")
        following = [m.get("build_config", {}).get("input_shape") for m in layers[i + 1:]]
        after = out.get(c.get("name")) or next((s for s in following if s), None)
        if kind in ("Conv2D", "DepthwiseConv2D", "SeparableConv2D"):
            area = math.prod(c["kernel_size"])
            spatial = [math.ceil((n - (0 if c["padding"] == "same" else k - 1)) / s) for n, k, s in zip(built[1:3], c["kernel_size"], c["strides"])]
            cin = built[3]
            if kind == "Conv2D":
                total += math.prod(spatial) * area * cin // c["groups"] * c["filters"]
            else:
                total += math.prod(spatial) * area * cin * c["depth_multiplier"]
            if kind == "SeparableConv2D":
                total += math.prod(spatial) * cin * c["depth_multiplier"] * c["filters"]
        elif kind == "Conv2DTranspose":
            total += math.prod(built[1:3]) * math.prod(c["kernel_size"]) * built[3] * c["filters"]
        elif kind == "Dense":
            total += math.prod(built[1:]) * c["units"]
        elif kind == "MultiHeadAttention":
            tokens, width = next(tensors(l["inbound_nodes"]))["config"]["shape"][1:] if "config" in next(tensors(l["inbound_nodes"])) else (None, None)
            inner = c["num_heads"] * c["key_dim"]
            total += tokens * width * inner * 4 + 2 * tokens * tokens * inner
        elif kind in ("LSTM", "Bidirectional"):
            inner, sides = (c["layer"]["config"], 2) if kind == "Bidirectional" else (c, 1)
            total += sides * built[1] * 4 * inner["units"] * (built[2] + inner["units"])
    return total
print("%.6g" % (count(model["config"]) / 1e9))
PY
counted() { # counted FILE PARAMETERS
    if ! "$DLMODEL" -v --version 2> /dev/null | grep -q zlib && [ "$(head -c 9 "$models/$1" | tail -c 1 | od -An -tu1 | tr -d ' ')" = 8 ]; then
        echo "skip $1: built without zlib"
        return
    fi
    run import keras "$models/$1" -o "$SCRATCH/w.json"
    check "$1" 0 " layers: $2 parameters, $(python3 "$SCRATCH/count.py" "$models/$1") GMAC a sample"
    run predict -w "$models/$1" -s iris-v100 -f keras-mirrored -b 4
    check "$1 as a workload" 0 'read as keras'
}
counted vgg16.keras 138357544
counted resnet50.keras 25583592
counted mobilenetv2.keras 3504872
counted efficientnetb0.keras 5288548
counted tiny_transformer.json 164098
counted small_cnn.json 17850
counted nested.json 364
counted small_lstm.json 31377 # Keras: 31121, with one bias each

# the model of the same name that is built in
rate() { jq -r '.results[0].iteration_s' "$SCRATCH/out"; }
run predict -w vgg16 -s iris-v100 -f keras-mirrored -b 32 --json
builtin=$(rate)
run predict -w "$models/vgg16.keras" -s iris-v100 -f keras-mirrored -b 32 --json
says 'VGG-16 as the workload of that name, within 3 %' awk -v a="$builtin" -v b="$(rate)" 'BEGIN { exit !(a > 0 && (a / b - 1) ^ 2 < 0.03 ^ 2) }'

# Keras 2, with tensors among the arguments; names that two calls share; what has no kind
layer() { printf '{"class_name":"%s","name":"%s","config":{"name":"%s"%s},"inbound_nodes":[%s]}' "$1" "$2" "$2" "$3" "$4"; }
model() { printf '{"class_name":"Functional","keras_version":"2.15.0","config":{"name":"m","layers":[%s],"input_layers":[["in",0,0]],"output_layers":[["last",0,0]]}}' "$1" > "$SCRATCH/model.json"; }
input=$(layer InputLayer in ',"batch_input_shape":[null,16,32]' '')
model "$(layer Dense last ',"units":2' '[["sum",0,0,{}]]'),$(layer MultiHeadAttention mha ',"num_heads":4,"key_dim":8,"value_dim":4' '[["in",0,0,{"value":["in",0,0]}]]'),$(layer Add sum '' '[["in",0,0,{}],["mha",0,0,{}]]'),$input"
run import keras "$SCRATCH/model.json"
# queries and keys 32 x 32 + 32, values and output 32 x 16 + 16 and 16 x 32 + 32, dense 32 x 2 + 2
check 'Keras 2, layers in any order' 0 '3250 parameters'
cp "$SCRATCH/model.json" "$SCRATCH/good.json"
model "$input,$(layer Dense last ',"units":2,"activation":"mine"' '[["in",0,0,{}]]')"
run import keras "$SCRATCH/model.json"
check 'an activation' 3 'model.json:1:[0-9]+: error: last: the activation "mine" has no kind'
model "$input,$(layer LayerScale scaled '' '[["in",0,0,{}]]'),$(layer Dense last ',"units":2' '[["scaled",0,0,{}]]')"
run import keras "$SCRATCH/model.json"
check 'a factor for each channel, 32 + 32 x 2 + 2' 0 ' 98 parameters'
model "$input,$(layer Lambda last '' '[["in",0,0,{}]]')"
run import keras "$SCRATCH/model.json"
check 'a class' 3 'last: a layer of the class Lambda has no kind'
model "$input,$(layer Dense last ',"units":2' '[["none",0,0,{}]]')"
run import keras "$SCRATCH/model.json"
check 'an input that nothing makes' 3 '1 calls read what nothing makes'
model "$input,$(layer Dense last ',"units":32' '[["in",0,0,{}]],[["last",0,0,{}]]')"
run import keras "$SCRATCH/model.json"
check 'shared weights' 3 'last: its weights are shared by 2 calls'
printf '{"class_name": "Functional", "config": {"layers": []}}' > "$SCRATCH/model.json"
run import "$SCRATCH/model.json"
check 'no layers' 3 'shape of the input'
printf '{"class_name": "MyModel", "keras_version": "3.0"}' > "$SCRATCH/model.json"
run predict -w "$SCRATCH/model.json"
check 'a class of its own' 3 'expected a Functional or Sequential model, found "MyModel"'
head -c 3000 "$models/vgg16.keras" > "$SCRATCH/cut.keras"
run import keras "$SCRATCH/cut.keras"
check 'an archive that is cut off' 3 'expected an archive of Keras'

# the Python package
if python3 -c 'import ctypes' 2> /dev/null && [ -e build/libdlmodel.so ]; then
    DLMODEL_DATA=$(pwd)/data DLMODEL_LIBRARY=$(pwd)/build/libdlmodel.so PYTHONPATH=python python3 -c "
import dlmodel
m = dlmodel.from_keras('$SCRATCH/good.json')
print(dlmodel.from_keras('$models/vgg16.keras').name)
print(m.name, m.predict(system='iris-v100', framework='keras-mirrored', nodes=1)['results'][0]['workload'])" > "$SCRATCH/out" 2> "$SCRATCH/err"
    status=$?
    check 'from_keras' 0
    has 'from_keras predicts' '^m m'
has 'from_keras opens an archive' '^vgg16'
else
    echo 'skip from_keras: no libdlmodel.so here'
fi
