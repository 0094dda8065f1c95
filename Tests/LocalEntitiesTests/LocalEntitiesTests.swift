import Testing

@testable import LocalEntities
