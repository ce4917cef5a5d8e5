"""
What clients of Python do in consumer groups: the play of groups.ts. A client says by `join(stage, topic, group,
instance_id)` what a member is. It has `partitions` (None: none yet, or a rebalance is going on), `messages`
(`partition:offset:value`), `poll()`, `commit()`, which may take effect as late as `stop()`, and `vanish()`, which
keeps the place of one that has a name.
"""

from stage import check_equal, wait_for

PARTITIONS = 4


class Play:
    """One group on one topic. Members are stopped at its end however it went."""

    def __init__(self, stage, create_topic, join):
        self.stage = stage
        self.topic = stage.topic
        self.group = f'group-of-{stage.topic}'
        self.members = []
        self._join = join
        create_topic(stage, self.topic, PARTITIONS)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for member in self.members:
            member.stop()

    def start(self, instance_id=None):
        member = self._join(self.stage, self.topic, self.group, instance_id)
        self.members.append(member)
        return member

    def end(self, member, stop):
        self.members.remove(member)
        stop()

    def poll(self):
        for member in self.members:
            member.poll()

    def wait_until_shared(self, *members):
        """Until the members have all partitions between them, each as many as the others."""
        each = PARTITIONS // len(members)

        def is_shared():
            shares = [member.partitions or [] for member in members]
            are_fair = all(len(share) == each for share in shares)
            return are_fair and len({partition for share in shares for partition in share}) == PARTITIONS

        wait_for(f'{each} partitions for each of {len(members)} members', is_shared, self.poll)

    def write_to_each(self, value):
        """A record in each partition. Returns them, as members tell of them."""
        return [f'{p}:{self.stage.write(self.topic, value, p)}:{value}' for p in range(PARTITIONS)]

    def wait_until_read(self, member, messages):
        wait_for(str(messages), lambda: set(messages) <= set(member.messages), self.poll)


def own(member, messages):
    return [message for message in messages if int(message.split(':')[0]) in member.partitions]


def share(play):
    """Two that start together share the partitions, and each reads what is written to its own, once."""
    members = [play.start(), play.start()]
    play.wait_until_shared(*members)
    written = play.write_to_each('one')
    for member in members:
        play.wait_until_read(member, own(member, written))
        check_equal(sorted(member.messages), own(member, written))


def rebalance(play):
    """A second one takes half of the partitions of the first, and gives them back."""
    first = play.start()
    play.wait_until_shared(first)
    play.wait_until_read(first, play.write_to_each('one'))
    second = play.start()
    play.wait_until_shared(first, second)
    written = play.write_to_each('two')
    for member in [first, second]:
        play.wait_until_read(member, own(member, written))
    play.end(second, second.stop)
    play.wait_until_shared(first)
    play.wait_until_read(first, play.write_to_each('three'))


def resume(play):
    """What one has committed, and the broker tells of over HTTP, another does not read again."""
    first = play.start()
    play.wait_until_shared(first)
    play.wait_until_read(first, play.write_to_each('one') + play.write_to_each('two'))
    first.commit()
    play.end(first, first.stop)
    check_equal(play.stage.committed(play.group), {play.topic: {str(p): 2 for p in range(PARTITIONS)}})
    written = play.write_to_each('three')
    second = play.start()
    play.wait_until_read(second, written)
    check_equal(sorted(second.messages), written)


def keep_place(play):
    """One that was away is given what it had, and the others hear nothing of it."""
    first, second = play.start('first'), play.start('second')
    play.wait_until_shared(first, second)
    had, generation = sorted(first.partitions), play.stage.generation(play.group)
    play.end(first, first.vanish)
    again = play.start('first')
    wait_for('its place', lambda: again.partitions is not None, play.poll)
    check_equal(sorted(again.partitions), had)
    written = play.write_to_each('one')
    for member in [again, second]:
        play.wait_until_read(member, own(member, written))
    check_equal(play.stage.generation(play.group), generation)


def group_checks(create_topic, join):
    plays = {'group of two': share, 'rebalance': rebalance, 'commit and resume': resume, 'static member': keep_place}

    def playing(play):
        def check(stage):
            with Play(stage, create_topic, join) as started:
                play(started)

        return check

    return {name: playing(play) for name, play in plays.items()}
