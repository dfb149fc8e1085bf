"""Connections in an answer: the pages that one field selects, all read by the same statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from graphql import FieldNode, GraphQLField
from graphql.execution.values import get_argument_values

from catalog.execution.levels import Items, Level, Run, appearances_of, keyed
from catalog.execution.statements import Rows
from catalog.filters import filtered, ranked
from catalog.models import MODELS, Owner, TypeName
from catalog.paging import Order, Page, Pages, Window

if TYPE_CHECKING:
    from catalog.execution.plans import Compiler

Part = Callable[[Page, list[Items]], Any]
Arguments = Mapping[str, Any]

CONNECTION_FIELDS = {"edges", "nodes", "pageInfo", "totalCount"}
PAGE_INFO = {
    "hasNextPage": attrgetter("has_next_page"),
    "hasPreviousPage": attrgetter("has_previous_page"),
    "startCursor": attrgetter("start_cursor"),
    "endCursor": attrgetter("end_cursor"),
}


@dataclass(slots=True)
class Connections:
    """The pages of one field: of each owner that a column of a level names, or one of all rows.

    `parts` make the object of a page from its place in the list and from what the levels of its
    nodes have loaded. `values` counts the fields of a page, and `edge_values` those of an edge.
    """

    type_name: TypeName
    definition: GraphQLField
    nodes: list[FieldNode]
    owner: Owner | None = None
    key: int = 0  # the column of the level with the owner's key
    levels: list[Level] = field(default_factory=list)
    parts: dict[str, Part] = field(default_factory=dict)
    values: int = 0
    edge_values: int = 0
    cursors: int = 0  # of an edge
    has_places: bool = False
    uses_instances: bool = False
    is_single = False

    def compile(self, compiler: Compiler) -> Connections:
        self.parts = {
            name: self.part(compiler, nodes)
            for name, nodes in compiler.fields(
                f"{self.type_name}Connection", self.nodes
            ).items()
        }
        self.values += len(self.parts)
        return self

    def part(self, compiler: Compiler, nodes: list[FieldNode]) -> Part:
        name = nodes[0].name.value
        if name == "__typename":
            return constant(f"{self.type_name}Connection")
        if name == "totalCount":
            return lambda page, _: page.total_count
        self.has_places = True
        if name == "nodes":
            place = self.level(compiler, nodes)
            return lambda page, loaded: [
                loaded[place][values[-1]][0]
                for values in page.values
                if values[-1] in loaded[place]
            ]
        return (self.page_info if name == "pageInfo" else self.edges)(compiler, nodes)

    def page_info(self, compiler: Compiler, nodes: list[FieldNode]) -> Part:
        getters = {
            name: PAGE_INFO.get(below[0].name.value, lambda _: "PageInfo")
            for name, below in compiler.fields("PageInfo", nodes).items()
        }
        self.values += len(getters)
        return lambda page, _: {name: get(page) for name, get in getters.items()}

    def edges(self, compiler: Compiler, nodes: list[FieldNode]) -> Part:
        type_name = f"{self.type_name}Edge"
        names, places = [], dict[str, int]()
        for name, below in compiler.fields(type_name, nodes).items():
            kind = below[0].name.value
            names.append((name, kind))
            self.cursors += kind == "cursor"
            if kind == "node":
                places[name] = self.level(compiler, below)
        self.edge_values += len(names)

        def edge(key: int, page: Page, index: int, loaded: list[Items]) -> Any:
            return {
                name: loaded[places[name]][key][0]
                if kind == "node"
                else page.cursors[index]
                if kind == "cursor"
                else type_name
                for name, kind in names
            }

        return lambda page, loaded: [
            edge(values[-1], page, index, loaded)
            for index, values in enumerate(page.values)
            if all(values[-1] in loaded[place] for place in places.values())
        ]

    def level(self, compiler: Compiler, nodes: list[FieldNode]) -> int:
        self.levels.append(compiler.level(self.type_name, nodes, "pk", grouped=True))
        return len(self.levels) - 1

    def load(self, rows: Rows, weights: list[int], run: Run) -> Items:
        """Return the object of each owner's page."""
        appearances = appearances_of(rows, weights, self.key)
        if not appearances:
            return {}
        arguments = get_argument_values(
            self.definition, self.nodes[0], dict(run.variables)
        )
        return self.objects(appearances, arguments, run)

    def run(self, arguments: Arguments, run: Run) -> Any:
        """Return the object of the page of all rows."""
        return self.objects({None: 1}, arguments, run)[None]

    def objects(
        self, appearances: Mapping[Any, int], arguments: Arguments, run: Run
    ) -> dict[Any, Any]:
        pages = self.pages(appearances, arguments)
        run.budget.values.spend(self.values * sum(appearances.values()))
        shown = [Page(pages, key) for key in appearances]
        weights: dict[int, int] = {}
        if self.has_places:
            for page in shown:
                self.spend(page, appearances[page.key], run)
                for *_, key in page.values:
                    weights[key] = appearances[page.key]
        loaded = [
            level.load(keyed(self.type_name, weights), run, weights, limit=len(weights))
            for level in self.levels
        ]
        return {
            page.key: {name: part(page, loaded) for name, part in self.parts.items()}
            for page in shown
        }

    def spend(self, page: Page, weight: int, run: Run) -> None:
        """Take the edges of a page from the budget, as often as the answer has the page."""
        run.budget.values.spend(self.edge_values * len(page.values) * weight)
        texts = (each for values in page.values for each in values)
        length = sum(len(each) for each in texts if isinstance(each, str))
        run.budget.characters.spend(self.cursors * length * weight)

    def pages(self, owners: Mapping[Any, int], arguments: Arguments) -> Pages:
        """Return the pages that the arguments select, or raise BadUserInputError."""
        window = dict(arguments)
        conditions = window.pop("filter", None)
        rows = filtered(MODELS[self.type_name].objects.all(), conditions)
        order_by, then_by = window.pop("order_by", None), window.pop("then_by", None)
        order: Order = order_by.value if order_by else Order.by()
        order = order.then(each.value for each in then_by or ())
        if "relevance" in order.names:
            rows = ranked(rows, conditions)
        return Pages(rows, Window(order, **window), self.owner, owners)


def constant(value: Any) -> Part:
    return lambda _page, _loaded: value
