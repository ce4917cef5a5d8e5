"""
What the programs for clients of Python share: what they are told, what the broker itself says over HTTP, and how a
check ends. A program is given the name of a check and the stage as JSON (program.ts). Exit code 0: the client can do
it.
"""

import json
import logging
import sys
import time
import urllib.request

VALUE = 'a text that is worth compressing ' * 50
LARGE_VALUE = 'x' * 1_000_000
WAIT_SECONDS = 30


class Complaints(logging.Handler):
    """What a client warns of. A check that leaves any has failed: the client had to help itself."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.texts = []

    def emit(self, record):
        self.texts.append(f'{record.levelname} {record.getMessage()}')

    def forget(self, words=''):
        """Those that were right to be made."""
        self.texts = [text for text in self.texts if words not in text]


complaints = Complaints()
logging.basicConfig(handlers=[complaints])


class Stage:
    """Addresses of an open and a guarded broker, a key, and the name of a topic that does not exist yet."""

    def __init__(self, told):
        self.open = told['open']
        self.guarded = told['guarded']
        self.http = told['http']
        self.user = told['user']
        self.password = told['password']
        self.topic = told['topic']

    def call(self, method, path, body=None):
        """One request to the open broker. Returns its answer; raises what is not a success."""
        data = None if body is None else json.dumps(body).encode()
        headers = {} if data is None else {'content-type': 'application/json'}
        request = urllib.request.Request(self.http + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=WAIT_SECONDS) as response:
            text = response.read()
        return json.loads(text) if text else None

    def records(self, topic, partition=0):
        """What is in a partition, as the broker tells of it over HTTP."""
        query = f'partition={partition}&offset=0&max_records=1000&max_bytes=4194304'
        return self.call('GET', f'/topics/{topic}/consume?{query}')['records']

    def write(self, topic, value, partition=0):
        """Writes a record over HTTP, in a batch of its own. Returns its offset."""
        records = [{'value': value, 'partition': partition}]
        return self.call('POST', f'/topics/{topic}/produce', {'records': records})['results'][0]['offset']

    def describe(self, topic):
        return self.call('GET', f'/topics/{topic}')

    def committed(self, group):
        """Topic to partition to offset, with partitions as text."""
        return self.call('GET', f'/groups/{group}/offsets')['offsets']

    def generation(self, group):
        return self.call('GET', f'/groups/{group}')['generation']


def check_equal(actual, expected):
    if actual != expected:
        raise AssertionError(f'expected {str(expected)[:500]!r}, got {str(actual)[:500]!r}')


def check_refused(call, error):
    """What is called raises that error, and nothing else."""
    try:
        call()
    except error:
        return
    raise AssertionError(f'was not refused with {error}')


def wait_for(what, condition, poll):
    """Polls until the condition holds."""
    end = time.monotonic() + WAIT_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f'waited {WAIT_SECONDS} s in vain for: {what}')
        poll()


def run(checks):
    """Carries out the check that the command line names."""
    name, told = sys.argv[1:]
    checks[name](Stage(json.loads(told)))
    check_equal(complaints.texts, [])
