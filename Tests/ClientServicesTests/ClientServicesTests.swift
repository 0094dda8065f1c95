import Testing

@testable import ClientServices
