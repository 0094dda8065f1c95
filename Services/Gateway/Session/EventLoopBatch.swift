import NIOCore

/// Distributes elements over their event loops, so that each loop processes its own in one turn.
enum EventLoopBatch {
    /// Calls `body` once on each event loop, with the loop's elements in order.
    static func execute<Element: Sendable>(
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
