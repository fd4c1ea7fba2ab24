// SPDX-License-Identifier: Apache-2.0
// dsm: one memory over nodes that share none. May use base, os, fabric.
//   address_space   where managed memory lies, page numbers, homes
//   protocol/       the coherence protocols as pure state machines
//   engine          carries a protocol out: faults, messages, protection, page contents
//   heap/           the managed heap of a node, and blocks of other nodes' heaps
//   prefetch        which pages to ask for before they are touched (pure): walks;
//   strided_walks   walks that skip pages;
//   fill_around     blocks of which pages are met in no order;
//   migratory       pages that nodes in turns read and then write;
//   load_store      threads that write what they have just read;
//   recall          what was waited for at the same place of the program
//   stretches       how far walks may go: through one large block
//   lent_pages      where the pages are that other nodes have asked for
// Invariants: the engine and all that it calls touch no managed page through the view, take no lock
// that a thread can hold while it touches managed memory, and allocate nothing from the managed
// heap.
#pragma once

#include "dsm/address_space.hpp"
#include "dsm/engine.hpp"
#include "dsm/heap/foreign_blocks.hpp"
#include "dsm/heap/heap.hpp"
