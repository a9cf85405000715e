"""Changes leases as fast as an API server lets it, from a line of input on, and prints how many changes were made."""

import http.client
import json
import ssl
import sys
import threading
import time
from urllib.parse import urlsplit

LEASES = "/apis/coordination.k8s.io/v1/namespaces/gpu-system/leases"
THREADS = 4


def write(connection: http.client.HTTPSConnection, names: list[str], seconds: float) -> int:
    """Each change is another, so that each is an event."""
    deadline, made = time.monotonic() + seconds, 0
    headers = {"Content-Type": "application/merge-patch+json"}
    while time.monotonic() < deadline:
        body = json.dumps({"metadata": {"labels": {"change": str(made)}}})
        connection.request("PATCH", f"{LEASES}/{names[made % len(names)]}", body, headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        made += 1
    return made


def main(url: str, authority: str, certificate: str, key: str, seconds: str, *names: str) -> None:
    sys.stdin.readline()
    context = ssl.create_default_context(cafile=authority)
    context.load_cert_chain(certificate, key)
    address = urlsplit(url)
    made: list[int] = []

    def work(number: int) -> None:
        connection = http.client.HTTPSConnection(address.hostname or "", address.port, context=context)
        made.append(write(connection, list(names[number::THREADS]), float(seconds)))

    threads = [threading.Thread(target=work, args=[number]) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == THREADS
    print(sum(made))


if __name__ == "__main__":
    main(*sys.argv[1:])
