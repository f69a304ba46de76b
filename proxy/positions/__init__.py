"""Where reading stands: the rules of a consumer group's offsets, whatever log it is and whoever asks it.

positions ─► epoch (what is owned, its commits) · placing (where reading begins, truncation, topics made anew)
├► share (one partition in one epoch) · identity (which log a topic's name stands for)
└► port (all that is asked of a log): answered by `kafka_log` for Kafka, by `simulation` in memory
"""

from proxy.positions.positions import Positions

__all__ = ["Positions"]
