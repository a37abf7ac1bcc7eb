"""states.py - the service in the state of one user: its environment says which (tests/cli/states.sh). Answers are those of the command
line in the same state, and name no folder of that user."""
import json
import os
import sys

from service import Service, check, command_line

STATE, HIDDEN = sys.argv[1], sys.argv[2]


def main():
    here = " (" + STATE + ")"
    answers = []

    def ask(*request):
        status, _, body = s.ask(*request)
        answers.append(body)
        return status, body

    with Service() as s:
        for path, words in (("/v1/systems", ("list", "systems")), ("/v1/workloads", ("list", "workloads"))):
            check(path + here, ask("GET", path) == (200, command_line(*words, "--json")))
        check("/form" + here, ask("GET", "/form")[0] == 200)
        for command in ("predict", "explain", "advise", "match"):
            got = ask("POST", "/v1/" + command, {"nodes": 1})
            check(command + " of nothing but a number of nodes" + here, got == (200, command_line(command, "--nodes", "1", "--json")), got[1][:300])
        run = {"framework": "pytorch-ddp", "workload": "resnet50", "nodes": 1}
        words = [w for k, v in run.items() for w in ("--" + k, str(v))]
        wanted = command_line("slurm", "script", *words).decode()
        status, body = ask("POST", "/v1/script", run)
        jobs = [line for line in wanted.splitlines() if line.startswith("#SBATCH") and "--output" not in line]
        if wanted:
            check("a job for the user's site" + here, status == 200 and all(j in body.decode() for j in jobs), (status, body[:300]))
        else:
            check("no site, no job" + here, status == 400 and b"no site" in body, (status, body[:300]))
        # errors too
        ask("POST", "/v1/predict", {"nodes": 1, "set": {"device.memory_bandwidth": "0"}})
        ask("POST", "/v1/predict", {"nodes": 1, "system": "locale"})
        ask("POST", "/v1/script", {**run, "site": "nowhere"})
        ask("GET", "/v1/schema/nothing")
        check("no answer names a folder of the user" + here, HIDDEN.encode() not in b"".join(answers),
              [a[:200] for a in answers if HIDDEN.encode() in a])
        json.loads(answers[0])


if __name__ == "__main__":
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    main()
