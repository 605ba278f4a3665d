"""Controls above a player that is shown anew whenever there is another run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from IPython.core.getipython import get_ipython
from IPython.display import display

from specdec_lab.widgets.live import Live
from specdec_lab.widgets.player import Player


class Watched(ABC):
    """A player with controls. The controls need a kernel; the player stays when it has gone."""

    player: Player
    """Of the latest run."""
    _shown: Any = None

    @abstractmethod
    def _controls(self) -> Live:
        """The widgets above the player."""

    def _ipython_display_(self) -> None:
        if getattr(get_ipython(), "kernel", None) is not None:
            display(self._controls())
        self._shown = display(self.player, display_id=True)

    def _show_again(self) -> None:
        """Put the present player in the place of the one before."""
        if self._shown is not None:
            self._shown.update(self.player)

    def __repr__(self) -> str:
        return repr(self.player)
