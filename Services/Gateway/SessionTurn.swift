import NIOCore

/// Gives event loops their parts of something that is for many sessions: to each in one turn.
enum SessionTurn {
    /// Calls back on every event loop that is among the elements', with its own in their order.
    static func take<Element: Sendable>(
        _ elements: [Element], on eventLoop: (Element) -> any EventLoop,
        _ body: @escaping @Sendable ([Element]) -> Void
    ) {
        guard let first = elements.first else { return }
        if elements.count == 1 { return eventLoop(first).execute { body(elements) } }
        var parts: [(loop: any EventLoop, elements: [Element])] = []
        for element in elements {
            let loop = eventLoop(element)
            // There are as many event loops as cores.
            if let index = parts.firstIndex(where: { $0.loop === loop }) {
                parts[index].elements.append(element)
            } else {
                parts.append((loop, [element]))
            }
        }
        for part in parts { part.loop.execute { body(part.elements) } }
    }
}
