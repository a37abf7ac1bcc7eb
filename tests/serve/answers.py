"""answers.py - what the service answers: the bytes of the command line, errors with their key, documents of the client."""
import json
import os
import re
import tempfile
import time

from service import JSON, RUN, SCRATCH, Service, check, command_line

LINE = ("--system", "iris-v100", "--workload", "resnet50", "--framework", "pytorch-ddp", "--nodes", "4")
FIXTURES = "tests/fixtures"


def read(path):
    with open(path, "rb") as f:
        return f.read()


def untimed(text):
    return re.sub(rb'"(elapsed_s|threads)": [^,\n]*', b"", text)


def results(answer):
    return json.loads(answer)["results"]


def same_bytes(s):
    check("predict: the bytes of the command line",
          s.ask("POST", "/v1/predict", RUN)[2] == command_line("predict", *LINE, "--json"))
    check("explain: the bytes of the command line",
          s.ask("POST", "/v1/explain", RUN)[2] == command_line("explain", *LINE, "--json"))
    what = {**RUN, "set": {"links.inter.bandwidth": "25GB/s"}, "nodes": [1, 2], "strict": False}
    check("predict: lists, settings and flags",
          s.ask("POST", "/v1/predict", what)[2].replace(b'"1,2"', b'')
          == command_line("predict", *LINE[:6], "--nodes", "1,2", "--set", "links.inter.bandwidth=25GB/s", "--json").replace(b'"1,2"', b''))
    plan = {"system": "dgx-a100-80", "workload": "gpt2_xl", "nodes": 2, "global_batch": 64, "precision": "mixed"}
    words = ("--system", "dgx-a100-80", "--workload", "gpt2_xl", "--nodes", "2", "--global-batch", "64", "--precision", "mixed")
    got, want = s.ask("POST", "/v1/search", plan)[2], command_line("search", *words, "--threads", "1", "--json")
    check("search: the command line's plans", json.loads(got)["results"] == json.loads(want)["results"], got[:200])
    for what in ("systems", "devices", "workloads", "frameworks", "strategies"):
        check(f"GET /v1/{what}", s.ask("GET", "/v1/" + what)[2] == command_line("list", what, "--json"))
    check("GET /v1/schema/system", s.ask("GET", "/v1/schema/system")[2] == command_line("schema", "system", "--json"))
    runs = {"files": [{"name": "runs.csv", "text": read("data/runs/keras_aws.csv").decode()}]}
    got = json.loads(s.ask("POST", "/v1/compare", runs)[2])
    want = json.loads(command_line("compare", "data/runs/keras_aws.csv", "--json"))
    check("compare: the command line's rows", got["rows"] == want["rows"])
    check("an empty body is all defaults", s.ask("POST", "/v1/predict", b"", JSON)[0] == 200)
    for command in ("campaign", "advise", "match"):
        status = s.ask("POST", "/v1/" + command, {"nodes": 2})[0]
        there = command.encode() in command_line("help")
        check(f"POST /v1/{command}", status in ((200, 400, 422) if there else (404,)), status)


def errors(s):
    s.problem("an unknown option names its key", 422, "POST", "/v1/predict", {**RUN, "sytem": "x"}, key="sytem")
    s.problem("an unknown system", 400, "POST", "/v1/predict", {**RUN, "system": "iris-v10"})
    s.problem("text for a flag", 422, "POST", "/v1/predict", {**RUN, "strict": "yes"}, key="strict")
    s.problem("null", 422, "POST", "/v1/predict", {**RUN, "nodes": None}, key="nodes")
    s.problem("an object for a number", 422, "POST", "/v1/predict", {**RUN, "nodes": {"a": 1}}, key="nodes")
    s.problem("a list for one value", 422, "POST", "/v1/predict", {**RUN, "epochs": [5]}, key="epochs")
    s.problem("an empty list", 422, "POST", "/v1/predict", {**RUN, "nodes": []}, key="nodes")
    s.problem("a list", 422, "POST", "/v1/predict", [1])
    s.problem("no JSON", 422, "POST", "/v1/predict", b"{", headers=JSON)
    s.problem("no such resource", 404, "GET", "/v1/nothing")
    s.problem("no such schema", 404, "GET", "/v1/schema/nothing")
    s.problem("another method", 405, "GET", "/v1/predict")
    check("which one is reported", [s.ask(m, p)[1].get("Allow") for m, p in (("GET", "/v1/predict"), ("DELETE", "/v1/systems"))] == ["POST", "GET, HEAD"])
    body = s.ask("POST", "/v1/predict", {**RUN, "set": {"device.memory_bandwidth": "0"}})[2]
    check("no folder of this machine in an error", b"detail" in body and os.getcwd().encode() not in body, body)
    s.problem("a form of another site", 415, "POST", "/v1/predict", b"a=b",
              headers={"Content-Type": "application/x-www-form-urlencoded"})
    for name in ("output", "trace", "threads", "data", "format", "write"):
        s.problem(f"--{name} is not for requests", 422, "POST", "/v1/predict", {**RUN, name: "x"}, key=name)


def documents(s):
    status, _, body = s.ask("POST", "/v1/import/config?name=mine", read(f"{FIXTURES}/config/llama.json"),
                            {"Content-Type": "application/octet-stream"})
    check("config.json becomes a workload", status == 200 and json.loads(body)["name"] == "mine", body)
    model = json.loads(body)
    status, _, body = s.ask("POST", "/v1/predict", {"system": "dgx-h100", "workload": model, "framework": "megatron-core", "nodes": 1})
    check("and can be predicted", status == 200 or b"fits" in body, body)
    check("no path of this machine's memory is shown", b"/proc/self/fd" not in body, body)
    status, _, body = s.ask("POST", "/v1/import/onnx?name=net", read(f"{FIXTURES}/onnx/resnet50.onnx"),
                            {"Content-Type": "application/octet-stream"})
    check("an ONNX model becomes a workload", status == 200 or b"protobuf" in body, body[:300])
    s.problem("a broken model", 422, "POST", "/v1/import/onnx", os.urandom(5000), headers={"Content-Type": "application/octet-stream"})
    for name, expected in (("config/llama.json", b"dlmodel-workload"), ("runs/megatron.sh", b"dlmodel predict --workload"), ("logs/horovod.log", b"id,source,")):
        status, _, body = s.ask("POST", "/v1/import/auto", read(f"{FIXTURES}/{name}"), headers={"Content-Type": "application/octet-stream"})
        check(f"{name} is recognized by its content", status == 200 and expected in body[:300], (status, body))
    s.problem("an unknown kind of file", 404, "POST", "/v1/import/exe", b"x", headers={"Content-Type": "application/octet-stream"})
    s.problem("a broken document keeps its place", 422, "POST", "/v1/predict", {**RUN, "workload": {"format": "dlmodel-workload"}})
    s.problem("a broken table", 422, "POST", "/v1/compare", {"files": [{"name": "my.csv", "text": "a,b\n1,2\n"}]})


def paths(s):
    for value in ("/etc/passwd", "../data/systems/iris-v100", "data/systems/iris-v100.json", "iris-v100.json", ".", "x/y"):
        s.problem(f"a path as a name: {value}", 422, "POST", "/v1/predict", {**RUN, "system": value}, key="system")
    status, _, body = s.ask("POST", "/v1/predict", {**RUN, "system": {"format": "dlmodel-system", "version": 1, "device": "/etc/passwd"}})
    check("a path inside a document", status in (400, 422) and b"root:" not in body, body)
    status, _, body = s.ask("POST", "/v1/predict", {**RUN, "set": {"device": "/etc/passwd"}})
    check("a path in --set", status in (400, 422) and b"root:" not in body, body)
    s.problem("a table by its path", 422, "POST", "/v1/predict", {**RUN, "measured": "runs.csv"}, key="measured")
    for path in ("/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/v1/schema/../../../etc/passwd", "/page.js/../../serve/http.c"):
        got = s.raw(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        check(f"traversal: {path}", b"root:" not in got and b" 404 " in got.split(b"\r\n")[0], got[:200])
    status, _, body = s.ask("GET", "/form?system=/etc/passwd")
    check("a path in the form", status == 422 and b"root:" not in body, body[-300:])


def page(s):
    status, headers, body = s.ask("GET", "/")
    policy = headers.get("Content-Security-Policy", "")
    check("the page", status == 200 and b"<!doctype html>" in body)
    check("its policy allows no inline script", "script-src 'self'" in policy and "unsafe" not in policy, policy)
    check("no inline script or style", not re.search(rb"<script(?![^>]*src)|style=|<style|\son\w+=", body))
    check("page weight below 200 kB", sum(len(s.ask("GET", p)[2]) for p in ("/", "/page.js", "/page.css")) < 200000)
    check("unchanged: 304", s.ask("GET", "/", headers={"If-None-Match": headers["ETag"]})[0] == 304)
    check("HEAD has no body", s.ask("HEAD", "/")[2] == b"" and s.ask("HEAD", "/healthz")[0] == 200)
    text = s.ask("GET", "/form?system=iris-v100&workload=vgg16&framework=pytorch-ddp&nodes=2")[2].decode()
    table = command_line("predict", "--system", "iris-v100", "--workload", "vgg16", "--framework", "pytorch-ddp", "--nodes", "2").decode()
    check("the form has the command line's table", table.splitlines()[4] in text.replace("&gt;", ">"), text[-900:])
    shown = s.ask("GET", "/form?system=%3Cb%20c%3D%22%27%26")[2].decode()
    check("the form escapes what it shows", "&lt;b c=&quot;'&amp;" in shown and "<b " not in shown, shown[-600:])
    api = json.loads(s.ask("GET", "/v1/openapi.json")[2])
    check("OpenAPI: each path has answers", all(o["responses"]["200"] for p in api["paths"].values() for o in p.values()))
    check("OpenAPI: options of predict", "batch_per_device" in str(api["paths"]["/v1/predict"]) and "trace" not in
          api["paths"]["/v1/predict"]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"])
    script = s.ask("POST", "/v1/script", {"framework": "pytorch-ddp", "workload": "resnet50", "nodes": 2, "site": "iris"})
    check("a Slurm job", script[0] == 200 and b"#SBATCH --nodes=2" in script[2], script)
    site = json.loads(read("slurm/sites/iris.json"))
    site["partition"] = "of-the-request"
    script = s.ask("POST", "/v1/script", {"framework": "pytorch-ddp", "workload": "resnet50", "nodes": 2, "site": site})
    check("a Slurm job for a site of the request", script[0] == 200 and b"#SBATCH --partition=of-the-request\n" in script[2], script)
    s.problem("a job takes no folder", 422, "POST", "/v1/script", {"framework": "pytorch-ddp", "dir": "x"})


def measured():
    folder = tempfile.mkdtemp(dir=SCRATCH)
    rows = read("data/runs/dlperf_oneflow.csv").decode().splitlines()
    with Service("--measured", folder) as s:
        plain = s.ask("POST", "/v1/predict", RUN)[2]
        check("an empty folder: no rows", json.loads(s.ask("GET", "/v1/measured")[2])["rows"] == [])
        with open(os.path.join(folder, "runs.csv"), "w", encoding="utf-8") as f:
            f.write("\n".join(rows[:9]) + "\n")
        first = json.loads(s.ask("GET", "/v1/measured")[2])
        check("what collect wrote is shown beside its prediction", len(first["rows"]) == 8, first)
        with open(os.path.join(folder, "more.csv"), "w", encoding="utf-8") as f:
            f.write("\n".join([rows[0]] + rows[9:12]) + "\n")
        check("a further table is seen", len(json.loads(s.ask("GET", "/v1/measured")[2])["rows"]) == 11)
        system = next(r["system"] for r in first["rows"] if not r["skipped"])
        framework = next(r["framework"] for r in first["rows"] if not r["skipped"])
        run = {**RUN, "system": system, "framework": framework}
        with Service() as other:
            differs = s.ask("POST", "/v1/predict", run)[2] != other.ask("POST", "/v1/predict", run)[2]
        check("measured runs sharpen answers", differs and plain)
        check("and leave those of other machines as they are", results(s.ask("POST", "/v1/predict", RUN)[2]) == results(plain))
        check("also of all frameworks, and of a form", s.ask("POST", "/v1/predict", {**RUN, "framework": "all"})[0] == 200
              and s.ask("GET", "/form?system=iris-v100&workload=vgg16&framework=pytorch-ddp")[0] == 200)
        for name in ("more.csv", "runs.csv"):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write("no,such,columns\n1,2,3\n")
        got, was = results(s.ask("POST", "/v1/predict", RUN)[2])[0], results(plain)[0]
        check("broken tables do not stop predictions", got["iteration_s"] == was["iteration_s"] and got["corrected_by"] == 0)
        view = json.loads(s.ask("GET", "/v1/measured")[2])
        check("the view of measured runs names the broken tables", view["rows"] == [] and [t.split(":")[0] for t in view["left_out"]]
              == ["more.csv", "runs.csv"], view)


# what may lie in a watched folder: each is named, and the others count
def hostile_tables(folder):
    header = ",".join(TABLE)
    files = {"other_columns.csv": "garbage\n1,2\n", "cell.csv": header + "\n" + ",".join([*TABLE_ROW[:8], "many", *TABLE_ROW[9:]]) + "\n",
             "binary.csv": "\0\1\2", "torn.csv": header + "\nr9,mine\n"}
    for name, text in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
    os.mkfifo(os.path.join(folder, "a_fifo.csv"))
    os.mkdir(os.path.join(folder, "folder.csv"))
    os.symlink("/dev/zero", os.path.join(folder, "zero.csv"))
    os.symlink("loop.csv", os.path.join(folder, "loop.csv"))
    os.symlink("/nowhere/at/all", os.path.join(folder, "gone.csv"))
    with open(os.path.join(folder, "huge.csv"), "w", encoding="utf-8") as f:
        f.truncate(1 << 40)
    return sorted([*files, "a_fifo.csv", "folder.csv", "zero.csv", "loop.csv", "gone.csv", "huge.csv"])


TABLE = ("id", "source", "system", "framework", "strategy", "workload", "precision", "optimizer", "nodes", "devices_per_node",
         "batch_per_device", "metric", "value", "unit")
TABLE_ROW = ("r1", "mine", "iris-v100", "pytorch-ddp", "data", "resnet50", "fp32", "momentum", "1", "4", "32", "throughput", "900",
             "samples/s")


def one_bad_of_many():
    folder = tempfile.mkdtemp(dir=SCRATCH)
    rest = [TABLE.index("optimizer"), TABLE.index("strategy")]
    with open(os.path.join(folder, "good.csv"), "w", encoding="utf-8") as f:
        f.write(",".join(TABLE) + "\n" + ",".join(TABLE_ROW) + "\n")
    with open(os.path.join(folder, "fewer_columns.csv"), "w", encoding="utf-8") as f:
        for line in (TABLE, ("r2", *TABLE_ROW[1:8], "2", *TABLE_ROW[9:12], "1800", TABLE_ROW[13])):
            f.write(",".join(c for i, c in enumerate(line) if i not in rest) + "\n")
    with Service("--measured", folder, "--short", "3s") as s:
        alone = results(s.ask("POST", "/v1/predict", RUN)[2])[0]
        check("tables with other columns count together", alone["corrected_by"] == 2, alone["corrected_by"])
        bad = hostile_tables(folder)
        status, _, body = s.ask("POST", "/v1/predict", RUN)
        got = results(body)[0] if status == 200 else {}
        check("bad files in the folder: the good tables count as before", got.get("iteration_s") == alone["iteration_s"]
              and got.get("corrected_by") == 2, (status, body[:300]))
        check("and each bad one is named", [n for n in bad if n not in " ".join(got.get("warnings", []))] == [], got.get("warnings"))
        view = json.loads(s.ask("GET", "/v1/measured")[2])
        check("also in the view", len(view["rows"]) == 2 and [t.split(":")[0] for t in view["left_out"]] == bad, view)
        check("no folder of this machine in them", SCRATCH not in json.dumps([got, view]))


def stream(s):
    import http.client
    c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=60)
    plan = {"system": "dgx-a100-80", "workload": "gpt2_xl", "nodes": 2, "global_batch": 64, "precision": "mixed"}
    c.request("POST", "/v1/search", json.dumps(plan), {**JSON, "Accept": "text/event-stream"})
    text = c.getresponse().read().decode()
    answer = "\n".join(line[6:] for line in text.split("event: answer\n")[1].splitlines() if line.startswith("data: "))
    check("a stream ends with the answer", json.loads(answer)["results"])
    c.close()


def main():
    with Service() as s:
        same_bytes(s)
        errors(s)
        documents(s)
        paths(s)
        page(s)
        stream(s)
        time.sleep(0.3)
        check("nothing of a request is logged", "iris" not in s.said(), s.said())
    measured()
    one_bad_of_many()


main()
