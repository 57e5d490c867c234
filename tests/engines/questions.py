"""Queries of any shape over a table of points, drawn at random: conditions, joins, WITH, subqueries, aggregates.

Whatever is drawn has one answer, in whatever order rows lie: limits follow an order of all columns, and windows are
ordered by what tells every row apart.
"""

from __future__ import annotations

from pathlib import Path

FORMS = [
    form
    for form in (Path(__file__).parents[1] / "questions" / "data" / "query_forms.sql").read_text().split(";\n")
    # Which rows lie side by side depends on the files.
    if form.strip() and "positional" not in form
]
PLACES = {"{}": "", "{a}": "a.", "{b}": "b.", "{s}": "s.", "{t}": "t."}

POINT = {
    "host": "text",
    "n": "whole",
    "v": "double",
    "ts": "time",
    "env": "text",
    "exact": "exact",
    "day": "date",
    "flag": "truth",
    "single": "single",
    "label": "text",
}
"""The columns of a point, and what kind of values they have."""
IN_FORMS = {name: POINT[name] for name in ("host", "env", "n", "v", "ts")}
"""Those that the queries of a form have at every place."""
HOST = {"host": "text", "zone": "text", "weight": "whole", "since": "time"}

LITERALS = {
    "text": ["'a'", "'ab'", "'b'", "''", "'web-1'", "'web-22'", "'nothing'", "'x'", "'y'", "'zz' || ''"],
    "whole": ["0", "1", "2", "-1", "1.5", "2e0", "7", "9007199254740993", "'3'", "1 + 1", "5::smallint"],
    "double": [
        "0",
        "0.25",
        "1.5",
        "-2.5",
        "'nan'::double",
        "'inf'::double",
        "'-inf'::double",
        "1e6",
        "2",
        "1.5::float",
    ],
    "single": ["0.1", "0.5", "0.1::float", "16777217", "'nan'::float", "-1"],
    "exact": ["1.25", "0", "-2.99", "1e0", "2.995", "3"],
    "date": [
        "date '2026-01-01'",
        "'2026-01-01'",
        "timestamp '2026-01-01 12:00:00'",
        "date '2026-01-02' - 1",
        "date '2026-01-01' + interval '1 day'",
    ],
    "time": [
        "'2026-01-01 01:00:00'",
        "timestamp '2026-01-01 00:45:00'",
        "timestamptz '2026-01-01 02:30:00+01'",
        "date '2026-01-01'",
        "date '2026-01-02'",
        "timestamp '2026-01-01' + interval '50 minutes'",
        "date_trunc('hour', timestamp '2026-01-01 01:59:00')",
        "make_timestamp(2026, 1, 1, 0, 20, 0.5)",
        "now()",
        "now() - interval '50 years'",
        "'2026-01-01T00:30:00Z'",
        "to_timestamp(1767229200)",
    ],
    "truth": ["true", "false"],
}
OPS = ["=", "<>", "<", "<=", ">", ">="]
ANY = [
    *["{x} {op} {y}"] * 6,
    "{y} {op} {x}",
    "{x} between {y} and {z}",
    "{x} not between {y} and {z}",
    "{x} in ({y}, {z})",
    "{x} not in ({y}, {z})",
    "{x} in ({y}, null)",
    "{x} not in ({y}, null)",
    "{x} is null",
    "{x} is not null",
    "{x} is not distinct from {y}",
    "{x} is distinct from {y}",
    "coalesce({x}, {y}) = {y}",
    "nullif({x}, {y}) is null",
    "case when {x} {op} {y} then {x} is not null else {x} is null end",
    "{x}::varchar >= '1'",
    "{x} = any ([{y}, {z}])",
]
TESTS = {
    "text": [
        "{x} like 'web%'",
        "{x} like 'web-_'",
        "{x} like '%b'",
        "{x} not like 'a%'",
        "{x} like 'a'",
        "regexp_matches({x}, '^web-')",
        "{x} ilike 'WEB%'",
        "starts_with({x}, 'web')",
        "not starts_with({x}, 'a')",
        "contains({x}, 'b')",
        "length({x}) > 1",
        "upper({x}) = 'AB'",
        "{x} || 'x' = 'bx'",
        "substr({x}, 1, 1) = 'w'",
        "regexp_matches({x}, '^(a|web)')",
        "{x} in (select zone from hosts where {host})",
        "{x} = (select max(host) from hosts where {host})",
        "lower({x}) > {y}",
        "{x} collate nocase = 'AB'",
    ],
    "whole": [
        "{x} + 1 {op} {y}",
        "{x} % 3 = 1",
        "abs({x}) {op} {y}",
        "{x}::double {op} {y}",
        "{x}::smallint = 2",
        "-{x} {op} {y}",
        "{x} in (select weight from hosts where {host})",
        "{x} > (select avg(weight) from hosts)",
        "{x} not in (select weight from hosts where weight is not null and {host})",
        "{x} in (1, 2, 3, 4, 5, 6, 7, 8)",
    ],
    "double": ["isnan({x})", "not isnan({x})", "{x} * 2 {op} {y}", "try_cast({x} as integer) {op} 1", "-{x} < {y}"],
    "single": ["{x}::double {op} {y}", "isnan({x})"],
    "exact": ["{x} * 2 {op} {y}", "{x}::double {op} {y}", "{x}::integer = 1", "round({x}, 1) = 1.3"],
    "date": ["{x} + 1 {op} date '2026-01-02'", "extract(day from {x}) = 1", "{x}::timestamp {op} {y}"],
    "time": [
        "date_trunc('hour', {x}) {op} '2026-01-01 01:00:00'",
        "date_trunc('hour', {x}) {op} timestamptz '2026-01-01 01:00:00+00'",
        "date_trunc('day', {x}) {op} date '2026-01-01'",
        "date_trunc('month', {x}) = timestamptz '2026-01-01 00:00:00+00'",
        "{x}::date {op} date '2026-01-01'",
        "{x}::date = '2026-01-01'",
        "time_bucket(interval '20 minutes', {x}) {op} timestamptz '2026-01-01 00:40:00+00'",
        "extract(hour from {x}) = 1",
        "epoch({x}) > 1767227400",
        "{x} + interval '30 minutes' {op} {y}",
        "{x} - interval '1 hour' between {y} and {z}",
        "{x} >= {y} and {x} < {y}::timestamptz + interval '40 minutes'",
        "strftime({x}, '%H') = '01'",
        "{x}::timestamp {op} {y}",
        "{x}::varchar like '2026-01-01 00%'",
        "{x} > (select max(since) from hosts where {host})",
    ],
    "truth": ["{x}", "not {x}", "{x} is true", "{x} is not false"],
}
AGGREGATES = [
    ("count(*)", None),
    ("count({x})", "any"),
    ("count(distinct {x})", "any"),
    ("min({x})", "any"),
    ("max({x})", "any"),
    ("sum({x})", "whole"),
    ("sum({x})", "double"),
    ("avg({x})", "whole"),
    ("sum({x})", "exact"),
    ("median({x})", "whole"),
    ("string_agg({x}, '-' order by {x})", "text"),
    ("bool_or({x})", "truth"),
    ("list(distinct {x} order by {x})", "date"),
    ("sum({x}) filter (where {condition})", "whole"),
    ("count(*) filter (where {condition})", None),
    ("max(case when {condition} then {x} end)", "whole"),
]
GROUPS = {
    "text": ["{x}", "upper({x})", "substr({x}, 1, 3)", "{x} is null"],
    "whole": ["{x}", "{x} % 3", "{x} // 2", "case when {x} > 1 then 'many' else 'few' end"],
    "time": [
        "date_trunc('hour', {x})",
        "{x}::date",
        "time_bucket(interval '15 minutes', {x})",
        "extract(minute from {x})",
    ],
    "date": ["{x}", "{x} + 1"],
    "truth": ["{x}"],
    "exact": ["{x}", "round({x})"],
    "double": ["{x} > 1", "isnan({x})"],
    "single": ["{x}"],
}
JOINS = ["join", "left join", "right join", "full join"]


class Questions:
    """Draws queries over `t` (points), `hosts` and `u`, and over the file of the hosts."""

    def __init__(self, draw, file):
        self.draw = draw
        self.file = file

    def query(self):
        shapes = [self.form, self.listing, self.grouped, self.joined, self.with_, self.sets, self.windowed, self.nested]
        return self.draw.choice(shapes)()

    # ---- conditions

    def condition(self, columns, of="", depth=0):
        """A condition on some columns."""
        chance = self.draw.random()
        if depth < 2 and chance < 0.4:
            parts = [self.condition(columns, of, depth + 1) for _ in range(self.draw.randrange(2, 4))]
            return "(" + self.draw.choice([" and ", " and ", " or "]).join(parts) + ")"
        if depth < 2 and chance < 0.55:
            inner = self.condition(columns, of, depth + 1)
            return self.draw.choice(["not ({})", "({}) is true", "({}) is not true", "coalesce({}, false)"]).format(
                inner
            )
        if chance < 0.6:
            return self.between_columns(columns, of)
        return self.test(*self.draw.choice(list(columns.items())), of)

    def test(self, name, kind, of):
        """One test of one column."""
        form = self.draw.choice([*ANY, *TESTS[kind] * 2])
        y, z = self.draw.choices(LITERALS[kind], k=2)
        inner = self.condition(HOST, depth=2) if "{host}" in form else ""
        return form.format(x=of + name, y=y, z=z, op=self.draw.choice(OPS), host=inner)

    def between_columns(self, columns, of):
        same = [name for name, kind in columns.items() if kind in ("whole", "double", "exact", "single")]
        texts = [name for name, kind in columns.items() if kind == "text"]
        left, right = self.draw.choices(same if len(same) > 1 else texts, k=2)
        return f"{of}{left} {self.draw.choice(OPS)} {of}{right}"

    # ---- sources: what stands behind FROM, and its columns

    def source(self, alias, depth=0):
        """A table, or a query in its place."""
        if depth > 1 or self.draw.random() < 0.5:
            return f"t {alias}", POINT
        match self.draw.randrange(5):
            case 0:
                return f"(select * from t where {self.condition(POINT)}) {alias}", POINT
            case 1:
                renamed = dict(zip(self.draw.sample(list(POINT), len(POINT)), POINT, strict=True))
                columns = ", ".join(f"{old} as {new}" for new, old in renamed.items())
                kinds = {new: POINT[old] for new, old in renamed.items()}
                return f"(select {columns} from t where {self.condition(POINT)}) {alias}", kinds
            case 2:
                inner, columns = self.source("i", depth + 1)
                return f"(select * from {inner} where {self.condition(columns, 'i.')}) {alias}", columns
            case 3:
                part = f"select {', '.join(POINT)} from t where "
                both = self.draw.choice(["union all", "union", "except", "intersect", "except all"])
                return f"({part}{self.condition(POINT)} {both} {part}{self.condition(POINT)}) {alias}", POINT
            case _:
                computed = "host, n + 1 as n, v, ts, env, exact, day, flag, single, coalesce(label, 'x') as label"
                return f"(select {computed} from t where {self.condition(POINT)}) {alias}", POINT

    def hosts(self, alias):
        place = self.draw.choice(["hosts", "hosts", f"'{self.file}'"])
        if self.draw.random() < 0.3:
            return f"(select * from {place} where {self.condition(HOST)}) {alias}"
        return f"{place} {alias}"

    # ---- shapes

    def form(self):
        """One of the written forms, with conditions in its places."""
        query = self.draw.choice(FORMS)
        for mark, of in PLACES.items():
            while mark in query:
                query = query.replace(mark, self.condition(IN_FORMS, of), 1)
        return query

    def listing(self):
        source, columns = self.source("a")
        names = ", ".join(f"a.{name}" for name in self.draw.sample(list(columns), self.draw.randrange(1, 5)))
        chosen = self.draw.choice([names, names, "*", f"distinct {names}", "a.* exclude (host)", "count(*)"])
        query = f"select {chosen} from {source} where {self.condition(columns, 'a.')}"
        return query + self.draw.choice(
            ["", "", f" order by all limit {self.draw.randrange(1, 30)}", " order by all limit 5 offset 3"]
        )

    def aggregates(self, columns, of):
        made = []
        for number in range(self.draw.randrange(1, 4)):
            form, kind = self.draw.choice(AGGREGATES)
            names = [name for name, each in columns.items() if kind in (each, "any", None)]
            if names:
                condition = self.condition(columns, of, 1) if "{condition}" in form else ""
                made.append(form.format(x=of + self.draw.choice(names), condition=condition) + f" as x{number}")
        return ", ".join(made) or "count(*) as x"

    def keys(self, columns, of):
        made = []
        for _ in range(self.draw.randrange(0, 3)):
            name, kind = self.draw.choice(list(columns.items()))
            made.append(self.draw.choice(GROUPS[kind]).format(x=of + name))
        return list(dict.fromkeys(made))

    def grouped(self):
        source, columns = self.source("a")
        keys = self.keys(columns, "a.")
        query = f"select {', '.join([*keys, self.aggregates(columns, 'a.')])} from {source}"
        query += f" where {self.condition(columns, 'a.')}" if self.draw.random() < 0.8 else ""
        if keys:
            group = self.draw.choice(["{}", "{}", "rollup ({})", "cube ({})"]).format(", ".join(keys))
            query += f" group by {group}"
            query += " having count(*) > 1" if self.draw.random() < 0.3 else ""
        return query

    def joined(self):
        left, columns = self.source("a")
        kind = self.draw.choice(JOINS)
        if self.draw.random() < 0.5:
            right, others = self.hosts("b"), HOST
            on = "a.host = b.host"
        else:
            right, others = self.source("b", 1)
            on = self.draw.choice(["a.host = b.host and a.n = b.n", "a.ts = b.ts", "a.host = b.env and a.day = b.day"])
        on += f" and {self.condition(others, 'b.', 1)}" if self.draw.random() < 0.4 else ""
        on += f" and {self.condition(columns, 'a.', 1)}" if self.draw.random() < 0.4 else ""
        if self.draw.random() < 0.2:
            kind = self.draw.choice(["semi join", "anti join"])
            where = self.condition(columns, "a.")
            return f"select {self.aggregates(columns, 'a.')} from {left} {kind} {right} on {on} where {where}"
        sides = [(columns, "a."), (others, "b.")]
        where = [self.condition(*self.draw.choice(sides)) for _ in range(self.draw.randrange(3))]
        more = self.aggregates(others, "b.").replace(" as x", " as y")
        query = f"select {self.aggregates(columns, 'a.')}, {more} from {left} {kind} {right} on {on}"
        return query + (f" where {' and '.join(where)}" if where else "")

    def with_(self):
        inner, columns = self.source("i")
        first = f"m as (select * from {inner} where {self.condition(columns, 'i.')})"
        if self.draw.random() < 0.3:
            first = first.replace("m as (", "m as materialized (", 1)
        second = f"k as (select * from m where {self.condition(columns)})"
        names = ", ".join(self.draw.sample(list(columns), 3))
        asked = self.condition(columns, "m.")
        last = self.draw.choice(
            [
                f"select {names} from k where {self.condition(columns)}",
                f"select {names} from m where {self.condition(columns)} union all select {names} from k",
                f"select {self.aggregates(columns, 'k.')} from k join m on k.ts = m.ts where {asked}",
                f"select {self.aggregates(columns, 'm.')} from m where m.host in (select host from k)",
                f"select {self.aggregates(columns, 'm.')} from m, (select max(n) as most from k) where m.n < most",
            ]
        )
        return f"with {first}, {second} {last}"

    def sets(self):
        names = ", ".join(self.draw.sample(list(POINT), 3))
        parts = [f"select {names} from t where {self.condition(POINT)}" for _ in range(self.draw.randrange(2, 4))]
        both = self.draw.choice([" union all ", " union ", " except ", " intersect ", " union all by name "])
        return f"select * from ({both.join(parts)}) order by all limit 200"

    def windowed(self):
        """Windows see rows that conditions outside of them do not."""
        over = f"(partition by {self.draw.choice(['host', 'env', 'day'])} order by ts, n)"
        function = self.draw.choice(["row_number()", "lag(n)", "sum(n)", "count(*)", "max(v)", "first_value(ts)"])
        inner = f"select *, {function} over {over} as w from t"
        inner += f" where {self.condition(POINT)}" if self.draw.random() < 0.5 else ""
        if self.draw.random() < 0.3:
            return f"select host, n, ts from t where {self.condition(POINT)} qualify {function} over {over} is not null"
        return f"select host, n, ts, w from ({inner}) s where {self.condition(POINT, 's.')}"

    def nested(self):
        source, columns = self.source("a")
        inner = f"select {{}} from t b where b.host = a.host and {self.condition(POINT, 'b.')}"
        outer = self.condition(columns, "a.")
        listed = f"select a.host, a.n from {source} where"
        nearest = "asof join hosts h on a.host = h.host and a.ts >= h.since"
        return self.draw.choice(
            [
                f"{listed} exists ({inner.format('*')}) and {outer}",
                f"{listed} not exists ({inner.format('1')}) and {outer}",
                f"{listed} exists ({inner.format('1')}) or {outer}",
                f"select a.host, a.n, ({inner.format('max(b.n)')}) as most from {source} where {outer}",
                f"{listed} a.n > ({inner.format('avg(b.n)')}) and {outer}",
                f"{listed} a.n in (select n from t b where {self.condition(POINT, 'b.')}) and {outer}",
                f"{listed} a.n >= all (select weight from hosts where {self.condition(HOST)}) and {outer}",
                f"select a.host, a.n, l.x from {source}, lateral ({inner.format('count(*) as x')}) l where {outer}",
                f"select a.host, h.zone from {source} {nearest} where {outer}",
                f"select count(*) from {source} where ({inner.format('count(*)')}) > 2 and {outer}",
            ]
        )
