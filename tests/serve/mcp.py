"""mcp.py - speaks the Model Context Protocol with `dlmodel mcp`: its answers are those of the command line, and wrong messages get
the errors of JSON-RPC 2.0."""
import json
import os
import subprocess
import sys

PROGRAM = os.environ["DLMODEL"]


def check(name, holds, more=""):
    print("ok " + name if holds else f"not ok {name}\n  {str(more)[:300]}")


def cli(*words):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False).stdout


class Session:
    def __init__(self):
        self.process = subprocess.Popen([PROGRAM, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.number = 0

    def send(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def raw(self, text):
        self.send(text)
        return json.loads(self.process.stdout.readline())

    def ask(self, method, **params):
        self.number += 1
        reply = self.raw(json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}))
        check(f"mcp: {method}: the reply has the request's number", reply["jsonrpc"] == "2.0" and reply["id"] == self.number, reply)
        return reply

    def call(self, tool, **arguments):
        result = self.ask("tools/call", name=tool, arguments=arguments)["result"]
        return result["content"][0]["text"], result["isError"]

    def end(self):
        self.process.stdin.close()
        return self.process.wait(20)


def main():
    s = Session()
    first = s.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "test", "version": "1"})["result"]
    check("mcp: the client's revision is spoken", first["protocolVersion"] == "2025-06-18" and "tools" in first["capabilities"], first)
    check("mcp: a revision of tomorrow gets the latest one",
          s.ask("initialize", protocolVersion="2099-01-01")["result"]["protocolVersion"] == "2025-11-25")
    s.send('{"jsonrpc": "2.0", "method": "notifications/initialized"}')  # no reply: the next line is that of the ping
    check("mcp: ping", s.ask("ping")["result"] == {})

    listed = {tool["name"]: tool for tool in s.ask("tools/list")["result"]["tools"]}
    check("mcp: tools", set(listed) == {"predict", "search", "explain", "match", "list"}, list(listed))
    check("mcp: options are arguments, and others are not",
          {"workload", "system", "nodes", "set"} <= set(listed["predict"]["inputSchema"]["properties"])
          and not {"output", "format"} & set(listed["predict"]["inputSchema"]["properties"])
          and all(tool["inputSchema"]["type"] == "object" for tool in listed.values()))

    given = {"workload": "vgg16", "system": "dgx1-v100", "framework": "pytorch-ddp"}
    for tool, nodes in (("predict", "1,2"), ("explain", "2")):
        words = [word for key, value in given.items() for word in ("--" + key, value)]
        text, wrong = s.call(tool, **given, nodes=[int(n) for n in nodes.split(",")] if tool == "predict" else int(nodes))
        check(f"mcp: {tool} answers as the command line", not wrong and text == cli(tool, *words, "--nodes", nodes, "--json"), text)
    for kind in ("systems", "workloads", "frameworks"):
        text, wrong = s.call("list", kind=kind)
        check(f"mcp: list {kind} answers as the command line", not wrong and text == cli("list", kind, "--json"), text)
    text, wrong = s.call("search", workload="vgg16", system="dgx1-v100", nodes=1, framework="pytorch-ddp")
    check("mcp: search", not wrong and json.loads(text)["results"], text)
    text, wrong = s.call("match", systems=["dgx1-v100", "dgx-a100-80"], workloads="vgg16", framework=["pytorch-ddp"])
    check("mcp: match", not wrong and json.loads(text), text)

    own = {"format": "dlmodel-workload", "version": 1, "name": "own", "summary": "-", "source": "imported",
           "input": {"channels": 8}, "layers": [{"kind": "dense", "out": 4}, {"kind": "loss"}]}
    text, wrong = s.call("predict", workload=own, system="dgx1-v100", framework="pytorch-ddp")
    check("mcp: a document of the request's own", not wrong and json.loads(text)["results"], text)
    for what, arguments in (("an unknown option", {"nodez": 1}), ("a path", {"workload": "/etc/passwd"}),
                            ("an output file", {"output": "x"}), ("an unknown system", {"system": "dgx-h1000"})):
        text, wrong = s.call("predict", **arguments)
        check(f"mcp: {what} is an error of the tool, with its key", wrong and json.loads(text)["status"] >= 400, text)
    text, wrong = s.call("list", kind="cats")
    check("mcp: unknown list", wrong and "tools/list" in text, text)

    for what, message, code in (
            ("no JSON", "{", -32700), ("a number", "3", -32600), ("an empty list", "[]", -32600),
            ("no version", '{"id": 1, "method": "ping"}', -32600), ("no method", '{"jsonrpc": "2.0", "id": 1}', -32600),
            ("a list as id", '{"jsonrpc": "2.0", "id": [], "method": "ping"}', -32600),
            ("an unknown method", '{"jsonrpc": "2.0", "id": 1, "method": "resources/list"}', -32601),
            ("a list of parameters", '{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}', -32602),
            ("an unknown tool", '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "calibrate"}}', -32602),
            ("no tool", '{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}', -32602),
            ("text as arguments", '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "predict", "arguments": "x"}}',
             -32602), ("a message of 40 MiB", "[" + 40 * 1024 * 1024 * " " + "]", -32600)):
        reply = s.raw(message)
        check(f"mcp: {what}", reply.get("error", {}).get("code") == code and reply["error"]["message"], reply)
    reply = s.raw('{"jsonrpc": "2.0", "id": "a \\" b", "method": "ping"}')
    check("mcp: text as id", reply["id"] == 'a " b', reply)
    reply = s.raw('[{"jsonrpc": "2.0", "id": 12345678901234567890, "method": "ping"}, {"jsonrpc": "2.0", "method": "x"}, 1]')
    check("mcp: a batch", len(reply) == 2 and reply[0]["id"] == 12345678901234567890 and "error" in reply[1], reply)
    check("mcp: it goes on after errors", s.ask("ping")["result"] == {})
    check("mcp: it ends with its input", s.end() == 0)


main()
sys.exit(0)
